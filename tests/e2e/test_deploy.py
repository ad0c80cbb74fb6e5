# SPDX-License-Identifier: Apache-2.0
"""The files in deploy/: they can be read, and the agent takes the options in them."""
import json
import re
import shutil
import subprocess

import pytest
from conftest import ROOT

DEPLOY = ROOT / "deploy"


def yaml_documents(name):
    yaml = pytest.importorskip("yaml")
    return [document for document in yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")) if document]


def accepted(cairn, words, env=None):
    """The options are read and go together: what ends the run is that there is nothing to do."""
    run = cairn.run("agent", *words, "--mode", "none", env=env)
    assert run.returncode == 1, run.stderr
    assert "All profilers are disabled" in run.stderr


@pytest.fixture
def token(tmp_path):
    (tmp_path / "token").write_text("sesame")
    return str(tmp_path / "token")


def test_the_units_options_are_accepted(cairn, as_root):
    unit = (DEPLOY / "systemd/cairn-agent.service.in").read_text(encoding="utf-8")
    words = re.search(r"^ExecStart=@bindir@/cairn agent (.*)$", unit, re.M).group(1).split()
    accepted(cairn, words)
    accepted(cairn, words, {"GPROFILER_UPLOAD_RESULTS": "1", "CAIRN_TOKEN_FILE": "/dev/null", "GPROFILER_SERVICE_NAME": "a"})


def test_the_unit_is_installed_and_what_systemd_expects(build_folder, tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd-analyze, from systemd")
    unit = (build_folder / "cairn-agent.service").read_text(encoding="utf-8")
    assert "@" not in unit
    program = re.search(r"^ExecStart=(\S+)", unit, re.M).group(1)
    (tmp_path / "cairn-agent.service").write_text(unit.replace(program, "/bin/true"))
    run = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / "cairn-agent.service"], capture_output=True,
                         text=True, check=False)
    assert "cairn-agent.service" not in run.stderr, run.stderr


def test_kubernetes(cairn, as_root, token):
    container = yaml_documents("k8s/cairn.yaml")[1]["spec"]["template"]["spec"]["containers"][0]
    env = {entry["name"]: entry["value"] for entry in container["env"]}
    accepted(cairn, [word.replace("/etc/cairn/token", token) for word in container["args"]], env)
    assert {document["kind"] for document in yaml_documents("k8s/openshift/scc.yaml")} == {"Namespace", "Role", "RoleBinding"}


def test_docker_compose_and_ansible(cairn, as_root, token):
    words = yaml_documents("docker-compose/docker-compose.yml")[0]["services"]["cairn"]["command"]
    accepted(cairn, [word.replace("/run/secrets/token", token) for word in words])
    tasks = yaml_documents("ansible/cairn.yml")[0][0]["tasks"]
    assert any("ansible.builtin.systemd" in task for task in tasks)


def test_ecs(cairn, as_root):
    container = json.loads((DEPLOY / "ecs/task-definition.json").read_text(encoding="utf-8"))["containerDefinitions"][0]
    env = {entry["name"]: entry["value"] for entry in container["environment"]}
    accepted(cairn, container["command"], {**env, "GPROFILER_TOKEN": "sesame"})
