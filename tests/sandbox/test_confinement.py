"""Check what the settings of a program of the user can give it."""

from pathlib import Path
from typing import Any

import pytest

from bakeoff.errors import InfraError
from bakeoff.sandbox.confinement import UserProgram, keys_in, shared_paths


def program(*arguments: str, **settings: Any) -> UserProgram:
    return UserProgram("server 'mine'", ("sh", *arguments), **settings)


@pytest.mark.parametrize("setting", ["readable", "writable"])
@pytest.mark.parametrize("path", ["/proc", "/proc/self", "/sys/fs/cgroup", "/dev", "link"])
def test_the_machine_itself_is_never_shown(setting: str, path: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/proc")
    with pytest.raises(InfraError, match=rf"server 'mine': `{setting}` names /.*, which no sandbox shows"):
        shared_paths(program(**{setting: [Path(path)]}), tmp_path)


def test_a_word_that_names_it_shows_nothing_of_it(tmp_path: Path) -> None:
    assert shared_paths(program("/proc", "--at=/dev/null"), tmp_path) == {tmp_path: False}


@pytest.mark.parametrize(
    "name",
    [
        "id_rsa",
        "server.PEM",
        "private.key",
        ".Env",
        ".env~",
        ".docker",
        "credentials.json",
        "prod.tfvars",
        "secrets.yaml",
    ],
)
def test_files_that_usually_hold_keys_are_found(name: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / name).touch()
    (tmp_path / "readme.md").touch()
    assert list(keys_in({tmp_path: False})) == [tmp_path / "sub" / name]
