"""Runs commands that are hostile until shown otherwise, and takes their files out safely. See docs/sandbox.md.

sandbox = choose_sandbox("auto")
async with open_place() as place:
    put_files(place, {"main.py": b"print('hello')"})
    completed = await sandbox.run(Command(("python", "main.py"), place, seconds=10.0))
    files = collect(place.work, ["*.py"], max_bytes=1_000_000, max_files=100)
"""

from bakeoff.sandbox.places import hand_over, open_place, put_files
from bakeoff.sandbox.rungs import RungStatus, available, choose_sandbox, inside
from bakeoff.sandbox.safe_copy import CopyReport, Refused, Taken, collect, safe_copy, take

__all__ = [
    "CopyReport",
    "Refused",
    "RungStatus",
    "Taken",
    "available",
    "choose_sandbox",
    "collect",
    "hand_over",
    "inside",
    "open_place",
    "put_files",
    "safe_copy",
    "take",
]
