"""Choosing a sandbox, and the sentences for those that are not there."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import bakeoff.sandbox
from bakeoff.errors import SandboxMissing
from bakeoff.protocols import Command, Place, Sandbox
from bakeoff.sandbox import available, choose_sandbox
from bakeoff.sandbox.docker import DockerSandbox
from bakeoff.sandbox.mounts import blocking_folder, follow, plan_mounts
from bakeoff.sandbox.programs import environment, inherited, search_path, toolchain


def test_the_public_names_are_these() -> None:
    assert sorted(bakeoff.sandbox.__all__) == bakeoff.sandbox.__all__
    assert {"available", "choose_sandbox", "open_place", "put_files", "take"} <= set(bakeoff.sandbox.__all__)


def test_importing_the_package_loads_no_heavy_library() -> None:
    script = "import sys, bakeoff.sandbox; print({'scipy', 'typer', 'rich', 'httpx', 'numpy'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "set()"


def test_auto_takes_the_strongest_sandbox_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BAKEOFF_DOCKER_IMAGE", raising=False)
    working = [status.name for status in available() if status.ok]
    assert choose_sandbox().name == working[0]
    assert working[-1] == "process"


def test_every_sandbox_that_is_not_ok_says_the_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("BAKEOFF_DOCKER", raising=False)
    statuses = {status.name: status for status in available()}
    assert not statuses["docker"].ok
    assert not statuses["bwrap"].ok
    assert statuses["process"].ok
    assert all(status.ok != bool(status.way_out) for status in statuses.values())


@pytest.mark.parametrize(
    ("sandbox_kind", "sentence"),
    [
        ("bwrap", "bubblewrap is not installed; `apt-get install bubblewrap`"),
        ("docker", "docker or podman is not installed; `apt-get install docker.io`"),
        ("chroot", "'chroot' is not one of auto, docker, bwrap, process"),
    ],
)
def test_insisting_on_a_missing_sandbox_says_what_to_install(
    sandbox_kind: str, sentence: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("BAKEOFF_DOCKER", raising=False)
    with pytest.raises(SandboxMissing) as raised:
        choose_sandbox(sandbox_kind)
    assert sentence in str(raised.value)


def test_docker_without_an_image_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which("docker"):
        pytest.skip("needs docker: apt-get install docker.io")
    monkeypatch.delenv("BAKEOFF_DOCKER_IMAGE", raising=False)
    with pytest.raises(SandboxMissing, match="BAKEOFF_DOCKER_IMAGE names no image"):
        choose_sandbox("docker")


def test_a_bubblewrap_that_does_not_work_is_told_from_one_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SandboxMissing, match="is there but does not work"):
        choose_sandbox("bwrap")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root has capabilities to lose")
def test_root_without_mounts_runs_what_others_can_reach_and_refuses_the_rest() -> None:
    """As in a container that lacks CAP_SYS_ADMIN."""
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv: apt-get install util-linux")
    script = "from bakeoff.sandbox import available; print(available()[-1])"
    argv = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", sys.executable, "-c", script]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    closed = any(blocking_folder(follow(path, {})) for path in toolchain())
    assert ("which is closed to other users, and private mounts are not permitted" in said) == closed
    assert ("ok=True, detail='the subject runs as a user of its own, and shares files and network'" in said) != closed


def test_the_image_is_pinned_by_its_id(sandbox_on: Callable[[str], Sandbox], monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = sandbox_on("docker")
    assert isinstance(sandbox, DockerSandbox)
    assert sandbox.image_id.startswith("sha256:")
    monkeypatch.setenv("BAKEOFF_DOCKER_IMAGE", "no-such-image:latest")
    with pytest.raises(SandboxMissing, match="has no image 'no-such-image:latest'"):
        choose_sandbox("docker")


def test_only_allowed_names_are_inherited() -> None:
    host = {"OPENAI_API_KEY": "sk", "AWS_SECRET_ACCESS_KEY": "k", "LANG": "C", "LC_ALL": "C", "LD_PRELOAD": "evil.so"}
    assert inherited(host) == {"LANG": "C", "LC_ALL": "C"}


def test_the_search_path_has_our_python_first_and_no_relative_entry() -> None:
    entries = search_path({"PATH": "relative:.::/usr/bin"}).split(":")
    assert entries[0] == str(Path(sys.prefix) / "bin")
    assert all(entry.startswith("/") for entry in entries)


def test_what_the_command_adds_to_its_environment_wins(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path, tmp_path)
    made = environment(place, Command(("true",), place, 1.0, env={"HOME": "/elsewhere", "TOKEN": "t"}))
    assert (made["HOME"], made["TOKEN"]) == ("/elsewhere", "t")


def test_links_on_the_way_to_a_toolchain_below_a_closed_folder_are_made_again(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "versions" / "3.11.7" / "bin").mkdir(parents=True)
    (closed / "versions" / "3.11").symlink_to("3.11.7")
    (closed / "current").symlink_to(closed / "versions" / "3.11")
    links: dict[Path, str] = {}
    real = closed / "versions" / "3.11.7" / "bin"

    assert follow(closed / "current" / "bin", links) == real
    steps = plan_mounts(readable=[closed / "current" / "bin"], writable=[], hidden=[closed])

    below = [(step["kind"], step["path"]) for step in steps if step["path"].startswith(str(closed / "x")[:-1])]
    assert below == [
        ("link", str(closed / "current")),
        ("link", str(closed / "versions" / "3.11")),
        ("bind", str(real)),
    ]


def test_the_process_sandbox_works_for_a_bakeoff_that_lies_in_the_temporary_folder(tmp_path: Path) -> None:
    """Trials get a /tmp of their own, which must not take the program away from itself."""
    shutil.copytree(Path(bakeoff.__file__).parent, tmp_path / "bakeoff", ignore=shutil.ignore_patterns("__pycache__"))
    code = "import bakeoff.sandbox as s; print(s.__file__, s.choose_sandbox('process').name)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"{tmp_path / 'bakeoff' / 'sandbox' / '__init__.py'} process\n", done.stderr
