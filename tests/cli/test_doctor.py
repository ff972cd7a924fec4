"""Test what `bakeoff doctor` finds in odd places."""

from pathlib import Path

import pytest

from bakeoff.cli.doctor import KEYS, DoctorFinding, look
from bakeoff.sandbox import available


def findings(results: Path = Path("results")) -> dict[str, DoctorFinding]:
    return {finding.what: finding for finding in look(results)}


@pytest.fixture
def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("without_keys")
def test_keys_in_env_files_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not findings()["keys"].ok
    Path(".env").write_text("OPENAI_API_KEY=1\n")
    Path(".env.local").write_text("VERCEL_OIDC_TOKEN=1\n")
    assert findings()["keys"].found == "VERCEL_OIDC_TOKEN, OPENAI_API_KEY"
    Path(".env").write_bytes(b"\xff")
    unread = findings()["keys"]
    assert (unread.ok, unread.advice) == (False, "correct the file")


@pytest.mark.usefixtures("without_keys")
def test_a_current_folder_that_has_been_deleted_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    found = findings()
    assert (found["disk"].ok, found["disk"].found) == (False, "the current folder has been deleted")
    assert found["keys"].found == "none"


def test_nobody_is_told_to_install_docker_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("BAKEOFF_DOCKER", str(tmp_path / "docker"))
    monkeypatch.delenv("BAKEOFF_DOCKER_IMAGE", raising=False)
    assert available()[0].way_out == "set BAKEOFF_DOCKER_IMAGE to a local image"
    monkeypatch.setenv("BAKEOFF_DOCKER_IMAGE", "some")
    assert available()[0].way_out == "see that its engine runs, and set BAKEOFF_DOCKER_IMAGE to a local image"
    monkeypatch.setenv("BAKEOFF_DOCKER", str(tmp_path / "other"))
    assert "apt-get install docker.io" in available()[0].way_out


def test_the_size_and_the_place_of_the_cache_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_CACHE", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "weights").write_bytes(bytes(3 << 20))
    [cache] = [finding for finding in look(tmp_path) if finding.what == "cache"]
    assert cache.found == f"3 MB in {tmp_path}; it may be deleted"
