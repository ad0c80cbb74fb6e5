/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks as stackcollapse and bcc's profile -f write them: "comm;root;...;leaf COUNT", one
 * line per distinct stack. Marks behind names: _[k] kernel, _[i] inlined, _[j] made at run time.
 */
#include "formats/format.h"
#include "formats/text.h"

struct error *folded_write(const struct profile *profile, FILE *stream)
{
	static const struct text_form form = {.mark_inlined = true,
					      .current_lines = true,
					      .mark_jit = true,
					      .before = "",
					      .after = "\n"};

	TRY(text_write(profile, &form, stream));
	return format_finish(stream);
}
