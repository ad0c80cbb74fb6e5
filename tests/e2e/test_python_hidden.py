# SPDX-License-Identifier: Apache-2.0
"""CPython linked into a program that exports nothing of it, and stripped."""
import os
import shutil
import subprocess

import pytest

import pythons

ABOUT = """
import os, sysconfig
known = sysconfig.get_config_vars()
places = [os.path.join(known.get(key) or "", known.get("LIBRARY") or "none") for key in ("LIBPL", "LIBDIR")]
print(next((place for place in places if os.path.exists(place)), ""))
print(sysconfig.get_path("include"))
print(known.get("LIBS") or "", known.get("SYSLIBS") or "", known.get("LIBM") or "")
"""
# Debian's own has these outside of the library.
LIBRARIES = ["-lexpat", "-lz"]


def build(interpreter, folder):
    """The program, or None: there is no static library, or it is not for this machine's linker."""
    done = subprocess.run([interpreter.path, "-c", ABOUT], capture_output=True, text=True, check=True,
                          env=pythons.clean_environment())
    library, include, libraries = done.stdout.split("\n")[:3]
    if not library:
        return None
    program = folder / f"server-{interpreter.id}"
    for more in [], LIBRARIES:
        words = ["gcc", "-O1", "-no-pie", pythons.PROGRAMS / "embed.c", "-o", program, f"-I{include}", library,
                 *libraries.split(), *more, "-Wl,--exclude-libs,ALL"]
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            subprocess.run(["strip", "--strip-all", program], check=True)
            return program
    return None


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    if not shutil.which("gcc") or not shutil.which("strip"):
        pytest.skip("needs gcc and strip")
    folder = tmp_path_factory.mktemp("hidden")
    # Modules of one with a libpython would load that one, too.
    found = {one: build(one, folder) for one in pythons.interpreters() if not one.shared and "musl" not in one.kind}
    found = {interpreter: program for interpreter, program in found.items() if program}
    if not found:
        pytest.skip("no interpreter here has a static library")
    return found


def wrong(said, expected):
    """None, or a text: a profile's functions have their module in front."""
    said = pythons.python_frames(said)
    for frame, row in zip(said, expected):
        if frame["function"].endswith("." + row["function"]):
            frame["function"] = row["function"]
    return pythons.difference(said, expected, ["function", "file", "line"])


def home(interpreter):
    return {"PYTHONHOME": os.path.dirname(os.path.dirname(interpreter.path)), "PYTHONPATH": str(pythons.PROGRAMS)}


@pytest.mark.parametrize("name", ["code_kinds", "callbacks"])
def test_a_hidden_interpreter_is_found(cairn, as_root, programs, tmp_path, name):
    for interpreter, program in programs.items():
        folder = tmp_path / interpreter.id
        folder.mkdir()
        target = pythons.Target([program, pythons.PROGRAMS / f"{name}.py"], folder, "spin", **home(interpreter))
        try:
            told = target.wait_ready()
            done = cairn.run("record", "-p", target.pid, "-F", "499", "-d", "1", "-o", folder / "out.html")
            assert done.returncode == 0, done.stderr
            stacks = pythons.profile_of(folder / "out.html").get(target.pid, [])
        finally:
            target.stop()
        right = sum(count for frames, count in stacks if any(not wrong(frames, row["frames"]) for row in told.values()))
        total = sum(count for _, count in stacks)
        # The first samples may come before cairn has found the interpreter.
        assert total and right >= 0.95 * total, f"{interpreter.id}: {right} of {total} samples"
