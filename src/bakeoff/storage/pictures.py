"""Keep pictures of answers in a run folder: for each answer its picture, or why there is none.

They are added after grading and belong to no record. Run folders are passed on, so all that is read is checked again.
"""

from dataclasses import dataclass
from pathlib import Path

from bakeoff._kernel.files import open_file, write_atomically
from bakeoff._kernel.model import fingerprint
from bakeoff._kernel.png import BadPictureError, encode_again
from bakeoff.plan import Case
from bakeoff.storage.run_folder import RunFolder

WIDTH, HEIGHT = 480, 800
"""The largest picture, in pixels."""
MAX_BYTES = 1_000_000
_LONGEST = 1000  # characters of a problem
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG, or the reason why there is none."""

    png: bytes = b""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Pictures:
    """The pictures of one run."""

    folder: Path

    @classmethod
    def of(cls, run: RunFolder) -> "Pictures":
        return cls(run.pictures)

    def write(self, key: str, picture: Picture) -> None:
        if picture.problem:
            write_atomically(self._path(key, "txt"), picture.problem[:_LONGEST].encode(errors="replace"))
        else:
            write_atomically(self._path(key, "png"), picture.png)
            self._path(key, "txt").unlink(missing_ok=True)

    def has(self, key: str) -> bool:
        """Tell whether a picture was tried."""
        return self.shows(key) or self._path(key, "txt").exists()

    def shows(self, key: str) -> bool:
        return self._path(key, "png").exists()

    def read(self, key: str) -> Picture | None:
        """Return what is known of an answer, or None if no picture was tried."""
        if (text := _start_of(self._path(key, "txt"), 4 * _LONGEST)) is not None:
            return Picture(problem=text.decode(errors="replace")[:_LONGEST])
        if (data := _start_of(self._path(key, "png"), MAX_BYTES + 1)) is None:
            return None
        try:
            return Picture(png=encode_again(data, width=WIDTH, height=HEIGHT))
        except BadPictureError as error:
            return Picture(problem=f"the picture in the run folder is not shown: {error}")

    def _path(self, key: str, ending: str) -> Path:
        return self.folder / f"{key}.{ending}"


def picture_key(case: Case, answer: str) -> str:
    """Return the key of an answer. The same answer to the same case has one picture."""
    return fingerprint(_FORMAT, case.score_digest, case.picture, answer)


def _start_of(path: Path, size: int) -> bytes | None:
    try:
        with open_file(path) as file:
            return file.read(size)
    except OSError:
        return None
