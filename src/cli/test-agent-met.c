/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"
#include "cli/agent-met.h"

#include "unit.h"

TEST(a_runtime_is_met_by_the_name_of_a_process_or_by_its_library)
{
	static const struct {
		const char *process, *object;
		bool java;
	} cases[] = {
		{"java", NULL, true},
		{"javac-worker", "/usr/lib/jvm/lib/server/libjvm.so", true},
		{"app", "/opt/libjvm.so.d/other.so", false},
		{"app", "libjvm.so", false},
		{"ruby", "/usr/lib/libruby-3.1.so", false},
		{NULL, NULL, false},
	};

	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		_cleanup_profile_ struct profile *profile = NULL;
		struct process process = {.pid = 1};
		struct frame frame = {.kind = KIND_native};
		uint32_t index;
		frame_id id;
		ASSERT_OK(profile_new(NULL, &profile));
		if (cases[i].process) {
			const char *name = cases[i].process;
			ASSERT_OK(profile_string(profile, name, strlen(name), &process.name));
			ASSERT_OK(profile_process(profile, &process, &index));
		}
		if (cases[i].object) {
			const char *path = cases[i].object;
			ASSERT_OK(profile_string(profile, path, strlen(path), &frame.object));
			ASSERT_OK(profile_frame(profile, &frame, &id));
		}
		ASSERT_EQ(agent_has_met(profile, "java", "libjvm.so"), cases[i].java);
	}
}

RUN_TESTS(UNIT_TEST(a_runtime_is_met_by_the_name_of_a_process_or_by_its_library))
