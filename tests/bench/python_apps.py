# SPDX-License-Identifier: Apache-2.0
"""The applications of bench-apps: one row each. Packages come from PyPI, at these versions, into a folder of the bench's
own; what they run lies in apps/."""
import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import time

import session

SOURCES = pathlib.Path(__file__).resolve().parent / "apps"
PORT = 18233
CONNECTIONS = 3
READY_SECONDS = 60
PACKAGES = ["flask==3.0.3", "django==5.0.7", "gunicorn==22.0.0", "numpy==1.26.4", "pytest==8.2.2", "networkx==3.3",
            "aiohttp==3.9.5", "uvloop==0.19.0", "py-spy==0.4.0"]


@dataclasses.dataclass(frozen=True)
class App:
    name: str
    words: tuple  # behind the environment's Python; PORT is the port
    paths: tuple = ()  # what is asked of it; none: it is no server
    workers: bool = False  # its children do the work


GUNICORN = ("-m", "gunicorn", "--bind", "127.0.0.1:PORT", "--log-level", "error")
APPS = (
    App("flask", (*GUNICORN, "--workers", "2", "flask_site:app"), ("/page", "/json", "/items", "/words"), workers=True),
    App("django", (*GUNICORN, "--threads", "3", "--worker-class", "gthread", "django_site"), ("/books", "/prices", "/form"),
        workers=True),
    App("asyncio", ("asyncio_site.py", "PORT", "asyncio"), ("/gathered", "/iterated", "/thread")),
    App("uvloop", ("asyncio_site.py", "PORT", "uvloop"), ("/gathered", "/iterated", "/thread")),
    App("numpy", ("numeric.py",)),
    App("pytest", ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "networkx.algorithms")),
)


def install(python, folder):
    """Make the environment unless it is there. Gives the path of py-spy."""
    wanted = "\n".join([python, *PACKAGES])
    mark = folder / "installed"
    if session.read_text(mark) != wanted:
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([folder / "bin/pip", "-q", "--disable-pip-version-check", "install", *PACKAGES], check=True)
        mark.write_text(wanted, encoding="utf-8")
    return folder / "bin/py-spy"


def children(pid):
    return [int(word) for word in session.read_text(f"/proc/{pid}/task/{pid}/children").split()]


def answers(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class Running:
    """An application and who asks it, until the end of the with block."""

    def __init__(self, apps, app, folder):
        self.apps, self.app, self.log = apps, app, pathlib.Path(folder) / f"{app.name}.log"
        self.server = self.load = None

    def start(self, words):
        words = [str(PORT) if word == "PORT" else word.replace(":PORT", f":{PORT}") for word in words]
        environment = {**session.clean_environment(), "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "2"}
        with open(self.log, "ab") as log:
            return subprocess.Popen([str(self.apps / "bin/python"), *words], cwd=SOURCES, stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log, env=environment, start_new_session=True)

    def wait(self, ready, what):
        deadline = time.monotonic() + READY_SECONDS
        while not ready():
            if time.monotonic() > deadline or self.server.poll() is not None:
                raise RuntimeError(f"{self.app.name}: no {what}: {session.read_text(self.log)[-500:]}")
            time.sleep(0.05)

    def __enter__(self):
        try:
            self.server = self.start(self.app.words)
            if self.app.paths:
                self.wait(lambda: answers(PORT), "answer")
                self.load = self.start(("http_load.py", "PORT", str(CONNECTIONS), *self.app.paths))
            if self.app.workers:
                self.wait(lambda: children(self.server.pid), "worker")
            self.pids = children(self.server.pid) if self.app.workers else [self.server.pid]
            time.sleep(3)  # modules are loaded, and the first answers given
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for one in (self.load, self.server):
            if one:
                os.killpg(one.pid, signal.SIGKILL)
                one.wait()
