"""Run untrusted commands, and collect their files safely. See docs/explanation/sandbox.md.

sandbox = choose_sandbox("auto")
async with open_place() as place:
    put_files(place, {"main.py": b"print('hello')"})
    completed = await sandbox.run(Command(("python", "main.py"), place, seconds=10.0))
    files = take(place.work, ["*.py"], max_bytes=1_000_000, max_files=100).files
"""

from bakeoff.sandbox.places import hand_over, open_place, put_files
from bakeoff.sandbox.selection import available, choose_sandbox, guarantees, inside
from bakeoff.sandbox.untrusted_files import take

__all__ = ["available", "choose_sandbox", "guarantees", "hand_over", "inside", "open_place", "put_files", "take"]
