#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The counting of run-tests.py, on records as the runners write them."""
import importlib.util
import os
import unittest

SPEC = importlib.util.spec_from_file_location("run_tests", os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                                        "run-tests.py"))
run_tests = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(run_tests)

CMOCKA = """[==========] Running 4 test(s).
[ RUN      ] a
[       OK ] a
[ RUN      ] b
skipped: no such kernel
[  SKIPPED ] b
[ RUN      ] c
[  FAILED  ] c
[ RUN      ] d
[       OK ] d
[==========] 4 test(s) run.
"""
DIED = "[==========] Running 2 test(s).\n[ RUN      ] a\n[       OK ] a\n[ RUN      ] b\n"
JUNIT = """<testsuites><testsuite><testcase classname="t" name="a"/><testcase classname="t" name="b"><failure
 message="m">text</failure></testcase><testcase classname="t" name="c"><skipped message="needs root"/></testcase>
<testcase classname="t" name="d"><error message="fixture broke"/></testcase></testsuite></testsuites>"""


def meson_row(**more):
    return {"name": "cairn:unit / x/y", "result": "OK", "returncode": 0, "stdout": "", "duration": 1, **more}


class Counting(unittest.TestCase):
    def test_the_tests_inside_a_unit_test_program_are_counted(self):
        tally = run_tests.count_meson([meson_row(stdout=CMOCKA, stderr="c.c:7: error", result="FAIL", returncode=1)])
        self.assertEqual(tally.line(), "2 passed, 1 failed, 1 skipped")
        self.assertEqual(tally.skipped, [("x/y: b", "no such kernel")])
        self.assertEqual(tally.failed, [("x/y: c", "c.c:7: error")])

    def test_a_program_that_died_has_failed(self):
        tally = run_tests.count_meson([meson_row(stdout=DIED, result="FAIL", returncode=-11)])
        self.assertEqual(tally.line(), "1 passed, 1 failed, 0 skipped")
        self.assertIn("status -11", tally.failed[0][1])

    def test_a_program_that_left_early_with_status_0_has_failed(self):
        tally = run_tests.count_meson([meson_row(stdout=DIED)])
        self.assertEqual(tally.line(), "1 passed, 1 failed, 0 skipped")

    def test_other_programs_count_as_one(self):
        rows = [meson_row(), meson_row(result="FAIL", returncode=1, stdout="a.c:1: bad"),
                meson_row(result="SKIP", returncode=77, stdout="no clang here\n"), meson_row(result="TIMEOUT")]
        tally = run_tests.count_meson(rows)
        self.assertEqual(tally.line(), "1 passed, 2 failed, 1 skipped")
        self.assertEqual(tally.skipped[0][1], "no clang here")

    def test_pytest_failures_errors_and_skips_are_told_apart(self):
        tally = run_tests.count_junit(JUNIT)
        self.assertEqual(tally.line(), "1 passed, 2 failed, 1 skipped")
        self.assertEqual(tally.skipped, [("t: c", "needs root")])

    def test_the_viewers_last_line_is_believed_only_with_its_status(self):
        output = "\ufe63 draws (0.1ms) # no chromium\n3 passed, 0 failed, 1 skipped\n"
        self.assertEqual(run_tests.count_npm("ui", output, 0).line(), "3 passed, 0 failed, 1 skipped")
        self.assertEqual(run_tests.count_npm("ui", output, 0).skipped, [("ui: draws", "no chromium")])
        self.assertEqual(len(run_tests.count_npm("ui", output, 1).failed), 1)
        self.assertEqual(len(run_tests.count_npm("ui", "npm ERR!\n", 1).failed), 1)
        self.assertEqual(len(run_tests.count_npm("ui", "3 passed, 2 failed, 0 skipped\n", 1).failed), 2)


if __name__ == "__main__":
    unittest.main()
