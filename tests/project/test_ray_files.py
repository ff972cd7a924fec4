"""The files of docs/how-to/ray, as far as they can be tested without several machines."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
import yaml

pytestmark = pytest.mark.full

FILES = Path(__file__).parents[2] / "docs" / "how-to" / "ray"


def test_the_job_for_kubernetes_has_the_fields_of_kuberay() -> None:
    claim, job = yaml.safe_load_all((FILES / "rayjob.yaml").read_text())
    spec = job["spec"]
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert set(spec) == {"entrypoint", "shutdownAfterJobFinishes", "runtimeEnvYAML", "rayClusterSpec"}
    assert yaml.safe_load(spec["runtimeEnvYAML"])["pip"] == ["bakeoff[ray]"]
    head, (workers,) = spec["rayClusterSpec"]["headGroupSpec"], spec["rayClusterSpec"]["workerGroupSpecs"]
    images = {group["template"]["spec"]["containers"][0]["image"] for group in (head, workers)}
    assert len(images) == 1
    (volume,) = head["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]


def test_the_command_of_the_job_is_one_that_bakeoff_knows(tmp_path: Path) -> None:
    _, job = yaml.safe_load_all((FILES / "rayjob.yaml").read_text())
    words = job["spec"]["entrypoint"].split()
    words[words.index("/results")] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", *words, "--dry-run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_script_starts_a_cluster_and_runs_on_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    token = uuid4().hex  # of this cluster alone
    settings = {**os.environ, "PORT": port, "PATH": path, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
    shutil.copy(FILES / "cluster.sh", tmp_path)
    head = subprocess.Popen(
        ["sh", "cluster.sh", "head"],
        cwd=tmp_path,
        env=settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert head.stdout is not None
        next(line for line in head.stdout if "Ray runtime started" in line)
        words = ["run", "agents", "run", "--agent", "oracle", "--exercise", "1", "--no-open"]
        done = subprocess.run(
            ["sh", "cluster.sh", *words],
            cwd=tmp_path,
            env=settings,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    finally:
        os.killpg(head.pid, signal.SIGKILL)  # Ray would take half a minute to end by itself
        head.communicate()
    assert done.returncode == 0, done.stderr
