/* SPDX-License-Identifier: Apache-2.0 */
/* "cairn help from gprofiler": the options of gProfiler's agent and what becomes of them. */
#include <string.h>

#include "base/array.h"
#include "cli/agent-options.h"
#include "cli/help.h"

enum { NAME_COLUMN = 44 };

static const struct {
	const char *text, *title;
} effects[] = {
	[AGENT_same] = {"same", "As gProfiler does it"},
	[AGENT_differs] = {"differs", "In another way"},
	[AGENT_upload] = {"same, with --upload-results",
			  "As gProfiler does it; said to be without effect if nothing is uploaded"},
	[AGENT_nearest] = {"no effect, said once", "Without effect here; the run says so once"},
	[AGENT_runtime] = {"checked, said once",
			   "For runtimes whose functions are not named yet; the run says so once"},
	[AGENT_absent] = {"refused", "Refused, with exit status 2"},
};

const char *agent_effect_text(enum agent_effect effect)
{
	return effects[effect].text;
}

static void print_option(FILE *out, const struct agent_option *option)
{
	char left[64];

	snprintf(left, sizeof(left), "--%s", option->name);
	if (*option->note)
		help_print_row(out, NAME_COLUMN, left, option->note);
	else
		fprintf(out, "  %s\n", left);
}

struct error *from_gprofiler_print(FILE *out)
{
	fputs("cairn agent, and cairn without a verb, take gProfiler's options: the same names, "
	      "letters,\n"
	      "beginnings of names, GPROFILER_ variables and configuration file. What becomes of "
	      "each:\n",
	      out);
	for (size_t effect = 0; effect < ARRAY_COUNT(effects); effect++) {
		bool any = false;
		for (size_t i = 0; agent_option_at(i); i++) {
			const struct agent_option *option = agent_option_at(i);
			if (option->effect != effect)
				continue;
			if (!any)
				fprintf(out, "\n%s:\n", effects[effect].title);
			any = true;
			print_option(out, option);
		}
	}
	return NULL;
}
