#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-format has nothing to change: check-format.py ROOT. Mend with: clang-format -i FILE."""
import concurrent.futures
import os
import re
import subprocess
import sys

import source


def lines_to_change(root, path):
    run = subprocess.run(["clang-format", "--dry-run", "-Werror", path], cwd=root, capture_output=True, text=True)
    found = re.findall(r"^[^\n:]+:(\d+):\d+: error: ", run.stderr, re.M)
    if run.returncode and not found:
        raise RuntimeError(run.stderr)
    return [int(line) for line in found]


def main(root):
    report = source.Report("check-format")
    paths = source.files(root, ["src", "tests"], (".c", ".h"))
    paths = [p for p in paths if not p.startswith("tests/targets/")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, lines in zip(paths, pool.map(lambda p: lines_to_change(root, p), paths)):
            if lines:
                report.add(path, lines[0], f"clang-format would change {len(lines)} places from here on")
    return report.finish(len(paths))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
