"""Journals in segments, as older versions wrote those of long runs."""

from pathlib import Path

import zstandard

from bakeoff.storage.segments import JOURNAL, SEGMENTS

SMALL = 2000  # bytes of a segment: a few records


def compress(data: bytes, frame_bytes: int = 112 << 10) -> bytes:
    """Return lines as zstd frames, one after another; a line longer than 1 MB is cut."""
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
    frames, begin = [], 0
    while begin < len(data):
        end = data.find(b"\n", begin + frame_bytes - 1) + 1 or len(data)
        end = min(end, begin + (1 << 20))
        frames.append(compressor.compress(data[begin:end]))
        begin = end
    return b"".join(frames)


def make_segments(
    folder: Path, segment_bytes: int = SMALL, frame_bytes: int = 112 << 10, *, compressed: bool = True
) -> list[Path]:
    """Turn the beginning of a journal into segments of at least that size, and return these."""
    (folder / SEGMENTS).mkdir(exist_ok=True)
    made: list[Path] = []
    lines = b""
    for line in (folder / JOURNAL).read_bytes().splitlines(keepends=True):
        lines += line
        if len(lines) >= segment_bytes:
            path = folder / SEGMENTS / f"{len(made) + 1:06d}.jsonl{'.zst' if compressed else ''}"
            path.write_bytes(compress(lines, frame_bytes) if compressed else lines)
            made.append(path)
            lines = b""
    (folder / JOURNAL).write_bytes(lines)
    return made
