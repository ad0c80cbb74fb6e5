# SPDX-License-Identifier: Apache-2.0
"""The header of the agent's .col, key by key."""
import json
import platform
import socket

KEYS = ["containers", "container_names_enabled", "metadata", "metrics", "application_metadata",
        "application_metadata_enabled", "profiling_mode", "hwmetrics", "htmlblob", "flamegraph_html", "sampling_event",
        "sampling_mode", "sampling_frequency"]
# gProfiler's, in its order, with the type of each. cloud_info is there in a cloud only.
METADATA = {
    "cloud_provider": str, "agent_version": str, "spawn_time": str, "python_version": str, "run_mode": str,
    "deployment_type": str, "kernel_release": str, "kernel_version": str, "system_name": str, "hypervisor": str,
    "processors": int, "cpu_model_name": str, "cpu_arch_codename": str, "cpu_flags": str, "memory_capacity_mb": int,
    "hostname": str, "system": str, "os_name": str, "os_release": str, "os_codename": str, "libc_type": str,
    "libc_version": str, "hardware_type": str, "pid": int, "mac_address": str, "private_ip": str,
    "spawn_uptime_ms": float, "run_arguments": dict, "big_data": dict, "external_metadata": dict, "current_time": str,
    "profiling_mode": str, "sampling_event": str, "sampling_mode": str, "sampling_frequency": int}


def header(cairn, folder, *more, env=None):
    run = cairn.run("agent", "-o", folder, "-d", "1", "-f", "49", "--no-flamegraph", *more, env=env)
    assert run.returncode == 0, run.stderr
    text = (folder / "last_profile.col").read_text()
    return json.loads(text.split("\n", 1)[0][2:]), text


def test_the_header_has_all_keys_in_gprofilers_order(cairn, as_root, tmp_path):
    head, _ = header(cairn, tmp_path)
    assert list(head) == KEYS
    metadata = head["metadata"]
    assert {key: type(value) for key, value in metadata.items()} == METADATA
    assert list(metadata) == list(METADATA)
    assert metadata["kernel_release"] == platform.release()
    assert metadata["hostname"] == socket.gethostname()
    assert metadata["libc_version"] == platform.libc_ver()[1]
    assert metadata["run_mode"] == "standalone_executable"
    assert metadata["run_arguments"]["frequency"] == 49
    assert metadata["run_arguments"]["duration"] == 1
    assert metadata["run_arguments"]["flamegraph"] is False
    assert metadata["run_arguments"]["pids_to_profile"] == []


def test_the_token_is_nowhere_in_the_file(cairn, as_root, tmp_path):
    head, text = header(cairn, tmp_path, "--token", "s3cret-token", env={"GPROFILER_IN_K8S": "0"})
    assert "s3cret" not in text
    assert (head["metadata"]["run_mode"], head["metadata"]["deployment_type"]) == ("k8s", "k8s")


def test_without_metadata_only_the_hosts_name_is_told(cairn, as_root, tmp_path):
    head, _ = header(cairn, tmp_path, "--disable-metadata-collection")
    assert list(head["metadata"]) == ["hostname", "profiling_mode", "sampling_event", "sampling_mode",
                                      "sampling_frequency"]
