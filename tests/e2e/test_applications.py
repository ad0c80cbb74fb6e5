# SPDX-License-Identifier: Apache-2.0
"""Real programs, named in the agent's .col as src/identity/rules.def says."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import time

import pytest

PYTHON = "/usr/bin/python3"
SPIN = "while True:\n    pass\n"
WSGI = f"""
import threading
threading.Thread(target=exec, args=({SPIN!r}, {{}}), daemon=True).start()
def app(environ, respond):
    respond("200 OK", [])
    return []
"""
JAVA = "public class Busy { public static void main(String[] a) { for (;;) ; } }"
HOSTILE = "a;b\n# {}\x1b[31m\x07.py"
HOSTILE_SHOWN = "a|b # {}?[31m?.py"


@contextlib.contextmanager
def running(folder, *commands):
    """The commands in a folder, until the end."""
    started = []
    try:
        for command in commands:
            # A group of its own: servers have workers.
            started.append(subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL, start_new_session=True))
        time.sleep(3)
        yield started
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()


def applications(cairn, folder, *options):
    """The third frames of the lines of a session."""
    result = cairn.run("agent", "-o", folder / "out", "-d", "2", "-f", "99", "--no-flamegraph", *options)
    assert result.returncode == 0, result.stderr
    text = (folder / "out/last_profile.col").read_text(encoding="utf-8")
    lines = [line.rsplit(" ", 1)[0].split(";") for line in text.split("\n")[1:]]
    return {line[2] for line in lines if len(line) > 2 and line[2].startswith("appid: ")}


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "out").mkdir()
    return pathlib.Path(os.path.realpath(tmp_path))


def test_programs_in_python_are_named(cairn, as_root, folder):
    write(folder, "busy.py", SPIN)
    write(folder, HOSTILE, SPIN)
    write(folder, "wsgi_app.py", WSGI)
    write(folder, "my.ini", "[uwsgi]\nmodule = wsgi_app:app\n")
    commands = {
        (PYTHON, "-u", "busy.py"): f"python: busy.py ({folder}/busy.py)",
        (PYTHON, "-mbusy"): "python: -m busy",
        (PYTHON, HOSTILE): f"python: {HOSTILE_SHOWN} ({folder}/{HOSTILE_SHOWN})",
    }
    if os.path.exists("/usr/bin/gunicorn"):
        commands["/usr/bin/gunicorn", "--bind=127.0.0.1:0", "--workers", "1", "wsgi_app:app"] = \
            f"gunicorn: wsgi_app:app ({folder}/wsgi_app.py)"
    if shutil.which("uwsgi"):
        commands["uwsgi", "--plugin", "python3", "--enable-threads", "--http-socket", "127.0.0.1:0", "--ini", "my.ini"] = \
            f"uwsgi: my.ini ({folder}/wsgi_app.py)"
    with running(folder, *commands) as started:
        alive = {text for process, text in zip(started, commands.values()) if process.poll() is None}
        found = applications(cairn, folder)
        assert {"appid: " + text for text in alive} <= found
        assert len(alive) >= 3
        assert not applications(cairn, folder, "--disable-application-identifiers")


def test_programs_of_other_runtimes_are_named(cairn, as_root, folder):
    write(folder, "busy.mjs", "for (;;) ;")
    write(folder, "Busy.java", JAVA)
    commands = {}
    if shutil.which("node"):
        commands["node", "--no-warnings", "busy.mjs"] = f"nodejs: busy.mjs ({folder}/busy.mjs)"
    if shutil.which("java"):
        commands["java", "-Dapp.name=shop", "-Xmx64m", "Busy.java"] = "java: Busy.java (-Dapp.name=shop)"
    if not commands:
        pytest.skip("needs node or java")
    with running(folder, *commands) as started:
        alive = {text for process, text in zip(started, commands.values()) if process.poll() is None}
        found = applications(cairn, folder, "--app-id-args-filter", r"-Dapp\.\w+")
        assert {"appid: " + text for text in alive} <= found
        assert alive


def test_a_large_command_line_is_cut(cairn, as_root, folder):
    write(folder, "busy", SPIN)
    with running(folder, [PYTHON, "busy", *["x" * 100000] * 15], [PYTHON, "./" * 1000 + "busy"]):
        found = applications(cairn, folder)
    assert f"appid: python: busy ({folder}/busy)" in found
    assert any(text.endswith("...") and len(text) < 1100 for text in found)


def test_a_filter_that_is_no_expression_is_refused(cairn, tmp_path):
    result = cairn.run("agent", "-o", tmp_path, "--app-id-args-filter", "a(")
    assert result.returncode == 2
    assert "--app-id-args-filter: \"a(\": " in result.stderr
