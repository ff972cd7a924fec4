"""Run as a script by the Python of a layout: try its Python and Node in a sandbox, and look for what is private."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from bakeoff.errors import BakeoffError
from bakeoff.protocols import Command
from bakeoff.sandbox import choose_sandbox, open_place

LOOK = r"""
import json, os, sys
found = []
for path in json.loads(sys.argv[1]):
    try:
        found.append([path, open(path).read()])
    except OSError:
        pass
for folder in json.loads(sys.argv[2]):
    try:
        found.append([folder, os.listdir(folder)])
    except OSError:
        pass
print(json.dumps(found))
"""
WORKS = "import ssl, ctypes, sqlite3, json, sys; print('python', sys.prefix)"
NODE = "console.log('node', require('zlib').gzipSync('x').length, typeof process.env.NODE_PATH)"


async def main() -> None:
    files, folders = sys.argv[1:3]
    said: dict[str, Any] = {}
    for kind in ("process", "bwrap"):
        try:
            sandbox = choose_sandbox(kind)
        except BakeoffError as problem:
            said[kind] = {"missing": str(problem)}
            continue
        results: dict[str, object] = {}
        for name, argv in {
            "python": ("python3", "-c", WORKS),
            "node": ("node", "-e", NODE),
            "npm": ("npm", "--version"),
            "look": (sys.executable, "-c", LOOK, files, folders),
            "path": ("python3", "-c", "import os; print([n for n in os.environ if n in ('PYTHONPATH', 'NODE_PATH')])"),
        }.items():
            async with open_place(Path(os.environ["PLACES"])) as place:
                done = await sandbox.run(Command(argv, place, 60.0))
            results[name] = [done.exit_code, done.stdout.decode(), done.stderr.decode()[-500:]]
        said[kind] = results
    print(json.dumps(said))


asyncio.run(main())
