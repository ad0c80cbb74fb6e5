#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run every suite and add up: run-tests.py BUILD [--only SUITE,...] [--kind unit,corpus,house]

Suites: meson (unit, corpus, house), e2e (pytest on the finished program), ui (the viewer's own tests), browser (the
viewer in Chromium). Failures are shown with their output, skips with their reason; the last line is
"N passed, N failed, N skipped". A suite that ran nothing has failed.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SKIP_STATUS = 77
OUTPUT_SHOWN = 60  # lines of a failure
SUITE_SECONDS = {"meson": 1800, "e2e": 2700, "ui": 600, "browser": 900}


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def total(self):
        return self.passed + len(self.failed) + len(self.skipped)

    def line(self):
        return f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def tail(text):
    lines = text.rstrip().split("\n")
    return "\n".join(lines[-OUTPUT_SHOWN:])


def count_cmocka(name, stdout, stderr, status):
    """One program of unit tests: its own tests are what counts."""
    tally, reason = Tally(), ""
    announced = re.search(r"^\[==========\] Running (\d+) test", stdout, re.M)
    for line in stdout.split("\n"):
        if line.startswith("skipped: "):
            reason = line[len("skipped: ") :]
        match = re.match(r"\[ +(OK|FAILED|SKIPPED|ERROR) +\] (\w+)$", line)
        if not match:
            continue
        what, test = match.groups()
        if what == "OK":
            tally.passed += 1
        elif what == "SKIPPED":
            tally.skipped.append((f"{name}: {test}", reason or "no reason given"))
        else:
            tally.failed.append((f"{name}: {test}", tail(stderr or stdout)))
        reason = ""
    # A program that died on the way has failed even if what it got to was all right.
    if status and not tally.failed:
        tally.failed.append((name, f"ended with status {status}\n" + tail(stdout + stderr)))
    if not status and announced and tally.total() != int(announced.group(1)):
        tally.failed.append((name, f"{announced.group(1)} tests announced, {tally.total()} seen"))
    return tally


def count_meson(rows):
    """What the rows of Meson's testlog.json say."""
    tally = Tally()
    for row in rows:
        name = row["name"].split(" / ", 1)[-1]
        stdout, stderr = row.get("stdout") or "", row.get("stderr") or ""
        status = row.get("returncode", 0)
        if row["result"] in ("TIMEOUT", "INTERRUPT"):
            tally.failed.append((name, f"{row['result'].lower()} after {row['duration']:.0f} s\n" + tail(stdout + stderr)))
        elif stdout.startswith("[==========]"):
            tally.add(count_cmocka(name, stdout, stderr, status))
        elif row["result"] == "SKIP" or status == SKIP_STATUS:
            tally.skipped.append((name, tail(stdout + stderr).split("\n")[-1] or "no reason given"))
        elif row["result"] == "OK":
            tally.passed += 1
        else:
            tally.failed.append((name, f"ended with status {status}\n" + tail(stdout + stderr)))
    return tally


def count_junit(text):
    """pytest's own record."""
    tally = Tally()
    for case in xml.fromstring(text).iter("testcase"):
        name = f"{case.get('classname')}: {case.get('name')}"
        problem = case.find("failure")
        problem = case.find("error") if problem is None else problem
        skip = case.find("skipped")
        if problem is not None:
            tally.failed.append((name, tail((problem.text or problem.get("message") or ""))))
        elif skip is not None:
            tally.skipped.append((name, skip.get("message") or "no reason given"))
        else:
            tally.passed += 1
    return tally


def count_npm(name, output, status):
    """The viewer's runner ends with a line like ours."""
    tally = Tally()
    match = None
    for match in re.finditer(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", output, re.M):
        pass
    if not match:
        tally.failed.append((name, f"ended with status {status} and no count\n" + tail(output)))
        return tally
    passed, failed, skipped = map(int, match.groups())
    tally.passed = passed
    tally.failed += [(name, tail(output))] * failed
    reasons = re.findall(r"^\s*\ufe63 (.*?)(?: \(\S+\))?(?: # (?:SKIP)?\s*(.*))?$", output, re.M)
    for i in range(skipped):
        test, reason = reasons[i] if i < len(reasons) else ("", "")
        tally.skipped.append((f"{name}: {test}", reason or "no reason given"))
    if status and not failed:
        tally.failed.append((name, f"ended with status {status}\n" + tail(output)))
    return tally


def run(suite, command, **more):
    """Run COMMAND and give (status, output); it neither has a terminal nor waits for one."""
    print(f"== {suite}: {' '.join(command)}", flush=True)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=SUITE_SECONDS[suite], **more)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
        return 124, (output if isinstance(output, str) else output.decode(errors="replace")) + "\ntook too long"
    except OSError as error:
        return 127, str(error)


def run_meson(build, kinds=()):
    log = os.path.join(build, "meson-logs/testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    # Time-outs are for tests that hang; a busy machine is no failure.
    words = ["meson", "test", "-C", build, "--no-rebuild", "--timeout-multiplier=4"]
    status, output = run("meson", words + [f"--suite={kind}" for kind in kinds])
    if not os.path.exists(log):
        tally = Tally()
        tally.failed.append(("meson", f"ended with status {status}\n" + tail(output)))
        return tally
    with open(log, encoding="utf-8") as file:
        tally = count_meson(json.loads(line) for line in file if line.strip())
    if status and not tally.failed:
        tally.failed.append(("meson", f"ended with status {status}\n" + tail(output)))
    return tally


def pytest_python():
    """A python that has pytest; Debian's first, for it is what setup.sh installs."""
    for python in ("/usr/bin/python3", sys.executable):
        if subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode == 0:
            return python
    return "/usr/bin/python3"


def run_e2e(build):
    record = os.path.join(build, "e2e.xml")
    if os.path.exists(record):
        os.unlink(record)
    environment = {**os.environ, "CAIRN": os.path.join(build, "cairn"), "CAIRN_BUILD": build,
                   "PYTHONDONTWRITEBYTECODE": "1"}
    command = [pytest_python(), "-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=short", f"--junitxml={record}",
               "tests"]
    status, output = run("e2e", command, cwd=ROOT, env=environment)
    if os.path.exists(record):
        with open(record, encoding="utf-8") as file:
            tally = count_junit(file.read())
        if not status or tally.failed:
            return tally
    else:
        tally = Tally()
    tally.failed.append(("e2e", f"pytest ended with status {status}\n" + tail(output)))
    return tally


def prepare_ui(suite):
    """Install the viewer's packages unless its lock file is what they were installed from."""
    ui = os.path.join(ROOT, "ui")
    lock, stamp = os.path.join(ui, "package-lock.json"), os.path.join(ui, "node_modules/.installed-lock")
    with open(lock, "rb") as file:
        wanted = file.read()
    if os.path.exists(stamp):
        with open(stamp, "rb") as file:
            if file.read() == wanted:
                return 0, ""
    status, output = run(suite, ["npm", "ci", "--no-audit", "--no-fund", "--no-progress"], cwd=ui)
    if not status:
        shutil.copyfile(lock, stamp)
    return status, output


def run_npm(suite, script):
    status, output = prepare_ui(suite)
    if not status:
        status, output = run(suite, ["npm", "run", "--silent", script], cwd=os.path.join(ROOT, "ui"))
    return count_npm(suite, output, status)


SUITES = {
    "meson": run_meson,
    "e2e": run_e2e,
    "ui": lambda build: run_npm("ui", "test"),
    "browser": lambda build: run_npm("browser", "test:browser"),
}


def report(whole):
    for name, reason in whole.skipped:
        print(f"skipped: {name}: {reason}")
    for name, output in whole.failed:
        print(f"FAILED: {name}\n    " + output.replace("\n", "\n    "))
    print(whole.line(), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--only", default=",".join(SUITES), help="suites, separated by commas")
    parser.add_argument("--kind", default="", help="of Meson's tests, only these")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    whole = Tally()
    for suite in args.only.split(","):
        begin = time.monotonic()
        kinds = [kind for kind in args.kind.split(",") if kind]
        tally = run_meson(build, kinds) if suite == "meson" else SUITES[suite](build)
        if not tally.total():
            tally.failed.append((suite, "ran no test"))
        print(f"   {suite}: {tally.line()} in {time.monotonic() - begin:.0f} s", flush=True)
        whole.add(tally)
    report(whole)
    return 1 if whole.failed or not whole.passed else 0


if __name__ == "__main__":
    sys.exit(main())
