/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that name applications: rules.def expanded. */
#pragma once

#include "identity/application.h"
#include "identity/program.h"

/* RET is NULL, or the text of the application, which the caller frees. */
typedef struct error *rule_fn(const struct application_options *options,
			      const struct program *program, char **ret);

#define RULE(language, name, pattern, text) rule_fn rule_##name;
#include "identity/rules.def"
#undef RULE
