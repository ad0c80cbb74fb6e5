# SPDX-License-Identifier: Apache-2.0
"""The finished program under test. Whatever cannot be tested here is skipped with the reason."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOBODY = 65534

# Agents under test leave the machine's lock, log and process id alone, as does whoever tests beside us.
os.environ.update({"GPROFILER_BESIDE_OTHERS": "1", "GPROFILER_LOG_FILE": "/dev/null", "GPROFILER_PID_FILE": "/dev/null"})


def find_cairn():
    path = pathlib.Path(os.environ.get("CAIRN", ROOT / "build/cairn")).resolve()
    if not path.exists():
        pytest.fail(f"{path} is not there: build it, or set CAIRN")
    return path


class Cairn:
    """Runs cairn with a clean environment: CAIRN_ variables of whoever tests are options to the program."""

    def __init__(self, path):
        self.path = path

    def run(self, *args, env=None, timeout=120, before=()):
        """`before`: a command line that runs cairn, such as one that gives up privileges."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("CAIRN")}
        return subprocess.run([*before, str(self.path), *map(str, args)], env={**clean, "LC_ALL": "C", **(env or {})},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.fixture(scope="session")
def cairn():
    return Cairn(find_cairn())


@pytest.fixture(scope="session")
def cairn_for_all():
    """cairn where any user can run it: a home folder may be closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = shutil.copy(find_cairn(), folder)
        os.chmod(copy, 0o755)
        yield Cairn(pathlib.Path(copy))


@pytest.fixture
def as_root():
    if os.geteuid():
        pytest.skip("needs root")


@pytest.fixture
def as_nobody(as_root):
    """A command line that runs what follows without any privileges."""
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv, from util-linux")
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", "--no-new-privs"]


@pytest.fixture(scope="session")
def build_folder():
    return pathlib.Path(os.environ.get("CAIRN_BUILD", ROOT / "build")).resolve()
