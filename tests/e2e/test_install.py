# SPDX-License-Identifier: Apache-2.0
"""What is installed, where, and whether readers and shells accept it."""
import os
import pathlib
import shutil
import subprocess

import pytest

PREFIX = "usr/local"


@pytest.fixture(scope="module")
def tree(build_folder, tmp_path_factory):
    """The files of an installation, below a DESTDIR."""
    if not (build_folder / "build.ninja").exists():
        pytest.fail(f"{build_folder} is no build folder: set CAIRN_BUILD")
    target = tmp_path_factory.mktemp("installed")
    result = subprocess.run(["meson", "install", "-C", str(build_folder), "--no-rebuild"], stdin=subprocess.DEVNULL,
                            env={**os.environ, "DESTDIR": str(target)}, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    prefix = next(p.parents[1] for p in target.rglob("bin/cairn"))
    return prefix


def pages(tree):
    return sorted((tree / "share/man/man1").iterdir())


def words(output):
    return {line.split("\t")[0] for line in output.split("\n") if line}


def commands(tree):
    result = subprocess.run([tree / "bin/cairn", "help"], capture_output=True, text=True, check=True)
    section = result.stdout.split("Commands:\n", 1)[1].split("\n\n", 1)[0]
    return {line.split()[0] for line in section.split("\n") if line.startswith("  ") and line[2] != " "}


def test_the_program_runs_from_where_it_is_installed(tree):
    result = subprocess.run([tree / "bin/cairn", "--version"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout[:6]) == (0, "cairn ")


def test_every_command_has_a_man_page(tree):
    names = {page.name for page in pages(tree)}
    assert names == {"cairn.1"} | {f"cairn-{name}.1" for name in commands(tree)}


def test_man_pages_have_no_warnings(tree):
    if not shutil.which("man"):
        pytest.skip("needs man, from man-db")
    for page in pages(tree):
        result = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], capture_output=True,
                                text=True, env={**os.environ, "MANROFFSEQ": "", "MANWIDTH": "80"}, check=False)
        assert (result.returncode, result.stderr) == (0, ""), page.name
        assert len(result.stdout) > 500


def test_licences_are_installed(tree):
    names = {path.name for path in (tree / "share/doc/cairn").iterdir()}
    assert {"LICENSE", "Apache-2.0.txt", "GPL-2.0-only.txt"} <= names


def complete_in_bash(tree, *line):
    """What bash would offer for the last of the words of LINE."""
    script = tree / "share/bash-completion/completions/cairn"
    quoted = " ".join(f"'{word}'" for word in line)
    code = f'. {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(line) - 1}; _cairn; printf "%s\\n" "${{COMPREPLY[@]}}"'
    result = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    return words(result.stdout)


def test_bash_completes_commands_options_and_values(tree):
    assert complete_in_bash(tree, "cairn", "") == commands(tree) | {"--version", "--help"}
    assert complete_in_bash(tree, "cairn", "do") == {"doctor"}
    assert {"--brief", "--verbose", "--help"} <= complete_in_bash(tree, "cairn", "doctor", "--")
    assert complete_in_bash(tree, "cairn", "help", "--completions", "") == {"bash", "fish", "zsh"}
    assert complete_in_bash(tree, "cairn", "help", "--completions", "=", "f") == {"fish"}
    assert complete_in_bash(tree, "cairn", "help", "doc") == {"doctor"}
    assert complete_in_bash(tree, "cairn", "doctor", "--debug", "") == set()


def test_fish_completes_commands_options_and_values(tree):
    if not shutil.which("fish"):
        pytest.skip("needs fish")
    script = tree / "share/fish/vendor_completions.d/cairn.fish"

    def offered(line):
        result = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
                                capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr) == (0, "")
        return words(result.stdout)

    assert commands(tree) <= offered("cairn ")
    assert "--brief" in offered("cairn doctor --")
    assert {"bash", "fish", "zsh"} == offered("cairn help --completions ")


def test_zsh_accepts_its_script(tree, tmp_path):
    if not shutil.which("zsh"):
        pytest.skip("needs zsh")
    folder = tree / "share/zsh/site-functions"
    syntax = subprocess.run(["zsh", "-n", folder / "_cairn"], capture_output=True, text=True, check=False)
    assert (syntax.returncode, syntax.stderr) == (0, "")
    # _arguments, as zsh's own, given the very specifications of the script.
    code = (f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -d {tmp_path}/dump; "
            'print -r -- "${_comps[cairn]}"')
    loaded = subprocess.run(["zsh", "-f", "-c", code], capture_output=True, text=True, check=False)
    assert loaded.stdout.strip() == "_cairn", loaded.stderr
