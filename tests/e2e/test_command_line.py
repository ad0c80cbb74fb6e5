# SPDX-License-Identifier: Apache-2.0
"""Words in, exit status and one clear line out."""
import json
import re
import subprocess

import pytest


def commands(cairn):
    text = cairn.run("help").stdout
    section = text.split("Commands:\n", 1)[1].split("\n\n", 1)[0]
    found = re.findall(r"^  ([a-z][a-z-]*) ", section, re.M)
    assert {"doctor", "help"} <= set(found)
    return found


def test_the_version_is_one_line(cairn):
    result = cairn.run("--version")
    assert result.returncode == 0
    assert re.fullmatch(r"cairn \d+\.\d+\.\d+\n", result.stdout)


@pytest.mark.parametrize("words", [[], ["help"], ["--help"], ["-h"]])
def test_help_lists_the_commands(cairn, words):
    result = cairn.run(*words)
    assert (result.returncode, result.stderr) == (0, "")
    assert "Usage: cairn COMMAND" in result.stdout


def test_help_of_a_command_is_the_same_by_every_way(cairn):
    for name in commands(cairn):
        ways = [cairn.run("help", name), cairn.run(name, "--help"), cairn.run(name, "-h")]
        assert [way.returncode for way in ways] == [0, 0, 0]
        assert f"Usage: cairn {name}" in ways[0].stdout
        assert ways[0].stdout == ways[1].stdout == ways[2].stdout
        assert max(map(len, ways[0].stdout.split("\n"))) <= 100


@pytest.mark.parametrize("words, said", [
    (["docter"], "cairn: docter: no such command; did you mean doctor?"),
    (["xyzzy"], "cairn: xyzzy: no such command"),
    (["doctor", "--breif"], "cairn: doctor: --breif: no such option; did you mean --brief?"),
    (["doctor", "-x"], "cairn: doctor: -x: no such option"),
    (["doctor", "--debug"], "cairn: doctor: --debug: needs a value"),
    (["doctor", "--brief=1"], "cairn: doctor: --brief: takes no value"),
    (["doctor", "17"], "cairn: doctor: 17: takes options only"),
    (["help", "xyzzy"], "cairn: help: xyzzy: no such command"),
    (["help", "--completions", "tcsh"], "cairn: help: --completions tcsh: allowed is bash, fish or zsh"),
    (["help", "doctor", "help"], "cairn: help: help: one too many"),
    (["help", "from", "perf"], "cairn: help: from: of the tools that one may come from, gprofiler is known"),
    (["help", "from", "gprofiler", "x"], "cairn: help: x: one too many"),
    (["-c"], "cairn: agent: say where profiles go"),
    (["-o", "/tmp", "--mode=wall"], "cairn: agent: --mode wall: allowed is cpu, allocation or none"),
])
def test_wrong_words_are_named_and_end_with_2(cairn, words, said):
    result = cairn.run(*words)
    assert result.returncode == 2
    assert result.stdout == ""
    lines = result.stderr.split("\n")
    assert lines[0].startswith(said)
    assert lines[1].startswith("Try: cairn help")


def test_options_come_from_the_environment_too(cairn):
    whole, brief = cairn.run("doctor"), cairn.run("doctor", env={"CAIRN_BRIEF": "yes"})
    assert len(brief.stdout.split("\n")) < len(whole.stdout.split("\n"))
    wrong = cairn.run("doctor", env={"CAIRN_BRIEF": "perhaps"})
    assert wrong.returncode == 2
    assert "CAIRN_BRIEF=perhaps: a flag is yes, true, 1, no, false or 0" in wrong.stderr


def test_gprofilers_options_are_explained(cairn):
    result = cairn.run("help", "from", "gprofiler")
    assert (result.returncode, result.stderr) == (0, "")
    assert max(map(len, result.stdout.split("\n"))) <= 100
    for option in ["--profiling-frequency", "--java-jattach-timeout", "--perf-event", "--ruby-mode", "--verbose"]:
        assert re.search(f"^  {option}( |$)", result.stdout, re.M)


def test_an_option_without_effect_is_told_once_and_one_that_cannot_be_done_refused(cairn, as_root, tmp_path):
    nothing = ["--mode", "none", "-o", tmp_path]
    told = cairn.run("agent", *nothing, "--java-async-profiler-args", "a=b,c", "--php-mode", "phpspy", "--token", "secret")
    assert told.returncode == 1
    assert "cairn: agent: All profilers are disabled" in told.stderr
    assert told.stdout.count("--java-async-profiler-args has no effect here: nothing is loaded into the JVM") == 1
    assert told.stdout.count("does not name the functions of PHP") == 1
    assert "secret" not in told.stdout + told.stderr
    refused = cairn.run("agent", "-o", tmp_path, env={"GPROFILER_PERF_USE_CGROUPS": "1"})
    assert refused.returncode == 2
    assert "GPROFILER_PERF_USE_CGROUPS: cannot be done" in refused.stderr


def test_pids_that_are_gone_are_left_out(cairn, as_root, tmp_path):
    gone = subprocess.run(["sh", "-c", "echo $$"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    none = cairn.run("agent", "-o", tmp_path, "-d", "1", "--pids", gone)
    assert none.returncode == 1
    assert "none of the processes of --pids is there" in none.stderr
    some = cairn.run("agent", "-o", tmp_path, "-d", "1", "--pids", f"{gone},1", "--no-flamegraph")
    assert some.returncode == 0, some.stderr
    assert gone in some.stdout
    assert [path.suffix for path in tmp_path.glob("profile_*")] == [".col"]


def test_an_event_drives_the_agent(cairn, as_root, tmp_path):
    result = cairn.run("agent", "-o", tmp_path, "-d", "1", "--perf-event", "faults", "--perf-event-period", "3")
    assert result.returncode == 0, result.stderr
    header = json.loads((tmp_path / "last_profile.col").read_text().split("\n", 1)[0][2:])
    assert (header["sampling_event"], header["sampling_mode"], header["sampling_period"]) == ("page-faults", "period", 3)
    assert "sampling_frequency" not in header
    unknown = cairn.run("agent", "-o", tmp_path, "--perf-event", "nosuch")
    assert unknown.returncode == 2
    assert "--perf-event nosuch: no such event; there are cpu-clock, cycles, " in unknown.stderr


def test_resources_are_none(cairn):
    result = cairn.run("agent", "extract-resources", "--resources-dest", "/tmp")
    assert result.returncode == 0
    assert "cairn brings no other programs along" in result.stderr


def test_an_argument_cannot_write_to_the_terminal(cairn):
    result = cairn.run("\x1b[31mred\n")
    assert result.returncode == 2
    assert "\x1b" not in result.stderr
    assert "\\x1b[31mred\\x0a" in result.stderr


def test_a_full_disk_is_a_failure(cairn):
    result = cairn.run(before=["sh", "-c", 'exec "$0" "$@" >/dev/full'])
    assert result.returncode == 1
    assert "write standard output: No space left on device" in result.stderr
