"""Test which commit a checkout is at."""

import subprocess
from pathlib import Path

import pytest

from bakeoff._kernel.git import commit_of


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "track"
    (folder / "exercises").mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_the_commit_is_that_of_git_in_every_kind_of_checkout(checkout: Path, tmp_path: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert commit_of(checkout / "exercises") == head
    git(checkout, "pack-refs", "--all")
    assert commit_of(checkout) == head
    git(checkout, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert commit_of(tmp_path / "tree") == head
    git(checkout, "checkout", "-q", "--detach")
    assert commit_of(checkout) == head


@pytest.mark.parametrize("head", ["ref: ../../secret", "ref: refs/heads/none", "nonsense", "ref: HEAD", ""])
def test_a_head_that_says_anything_else_gives_none(head: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)
    assert commit_of(tmp_path) is None
