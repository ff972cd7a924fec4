"""Read members of a zip archive that may be hostile: nothing is unpacked to disk, and every size is bounded."""

import os
import struct
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bakeoff._kernel.files import in_megabytes, open_file
from bakeoff._kernel.json import parse_json
from bakeoff._kernel.text import visible
from bakeoff.errors import RunFolderError, UsageError

MAX_MEMBER_SIZE = 128 << 20
_MAX_UNPACKED = 1 << 30  # of all members together, unless
_DENSEST = 1000  # times the size of the archive is more, which only a bomb reaches
_ZSTANDARD = 93
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)
_LOCAL_HEADER = struct.Struct("<4s22xHH")


class Archive:
    """A zip file that is open for reading. Its members are read one at a time."""

    def __init__(self, path: Path, most_unpacked: int = _MAX_UNPACKED) -> None:
        self.path = path
        self._most_unpacked = most_unpacked
        self._file = open_file(path)
        try:
            self._zip = zipfile.ZipFile(self._file)
        except BaseException as error:
            self._file.close()
            if isinstance(error, zipfile.BadZipFile | NotImplementedError | ValueError):
                raise RunFolderError(f"{path} is not a whole zip archive: {visible(str(error), 200)}") from error
            raise
        self._size, self._unpacked = os.fstat(self._file.fileno()).st_size, 0
        # The last of several members with one name counts, as for Inspect.
        self.names = tuple({each.filename: None for each in self._zip.infolist()})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()
        self._file.close()

    def __contains__(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    def read_json(self, name: str) -> Any:
        """Return the value of a member. A bomb is refused while it is unpacked, whatever size its header says."""
        try:
            data = self._unpack(self._zip.getinfo(name))
        except _DAMAGE as error:
            raise self._problem(name, f"cannot be unpacked: {error}") from error
        if len(data) > MAX_MEMBER_SIZE:
            raise self._problem(name, f"is larger than {in_megabytes(MAX_MEMBER_SIZE)}, the most that is read")
        self._unpacked += len(data)
        if self._unpacked > max(self._most_unpacked, _DENSEST * self._size):
            raise self._problem(name, f"is refused: all is more than {_DENSEST:,} times as large as the archive")
        try:
            return parse_json(data)
        except ValueError as error:
            raise self._problem(name, f"is not readable JSON: {error}") from error

    def _unpack(self, member: zipfile.ZipInfo) -> bytes:
        if member.compress_type != _ZSTANDARD:
            with self._zip.open(member) as file:
                return file.read(MAX_MEMBER_SIZE + 1)
        data = _zstandard(self._packed(member))
        if len(data) <= MAX_MEMBER_SIZE and zlib.crc32(data) != member.CRC:
            raise zipfile.BadZipFile("its checksum does not match")
        return data

    def _packed(self, member: zipfile.ZipInfo) -> bytes:
        """Return the bytes of a member as they are in the file. `zipfile` cannot read Zstandard before Python 3.14."""
        self._file.seek(member.header_offset)
        signature, name, extra = _LOCAL_HEADER.unpack(self._file.read(_LOCAL_HEADER.size).ljust(_LOCAL_HEADER.size))
        if signature != b"PK\x03\x04" or member.flag_bits & 1 or member.compress_size > MAX_MEMBER_SIZE:
            raise zipfile.BadZipFile("its header is damaged, or it is encrypted or too large")
        self._file.seek(name + extra, os.SEEK_CUR)
        return self._file.read(member.compress_size)

    def _problem(self, name: str, what: str) -> RunFolderError:
        return RunFolderError(f"{self.path}: {visible(name, 200)} {visible(what, 300)}")


def _zstandard(packed: bytes) -> bytes:
    """Unpack data of one or more frames, at most one byte more than is allowed."""
    try:
        import zstandard
    except ImportError as error:
        raise UsageError(
            "the log is packed with Zstandard, as Inspect does now: run `pip install zstandard` to read it"
        ) from error
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(packed, read_across_frames=True) as data:
            return data.read(MAX_MEMBER_SIZE + 1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
