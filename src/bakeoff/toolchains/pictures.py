"""Take pictures of components in Chromium. A picture belongs to no verdict: whatever happens here, grading is over.

Vite, browser and page are one command in the sandbox, with a folder of their own, as in `browser`.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bakeoff.plan import Framework
from bakeoff.protocols import Command, Sandbox
from bakeoff.sandbox import open_place, put_files
from bakeoff.storage.pictures import HEIGHT, MAX_BYTES, WIDTH, BadPictureError, Picture, encode_again
from bakeoff.toolchains.browser import BROWSER_LIMITS, FONTS, chromium_in
from bakeoff.toolchains.install import Say, install_vitest, quiet
from bakeoff.toolchains.outcome import last_output, stopped_by_limit, without_colours

_SECONDS = 90.0  # for compiling, the start of a browser on a busy machine, and the limits inside


@dataclass(frozen=True, slots=True)
class PictureToolchain:
    """Takes pictures of components."""

    sandbox: Sandbox
    toolchain: Path
    chromium: str

    @classmethod
    async def ready(cls, sandbox: Sandbox, say: Say = quiet) -> "PictureToolchain":
        """Install what is needed. Raise `InfraError` if Node or Chromium is missing."""
        chromium = await chromium_in(sandbox)
        return cls(sandbox, await install_vitest(say), chromium)

    async def take(
        self, files: Mapping[str, str], component: str, framework: Framework, props: str | None = None
    ) -> Picture:
        """Render a component once, with the properties that the module `props` exports, and return its picture."""
        if framework == "typescript":
            return Picture(problem="plain TypeScript has nothing to render")
        wanted = {"component": component, "props": props, "framework": framework, "chromium": self.chromium}
        job = {**wanted, "width": WIDTH, "height": HEIGHT, "bytes": MAX_BYTES}
        readable = (self.toolchain, *((FONTS,) if FONTS.is_dir() else ()))
        async with open_place() as place:
            put_files(place, {name: text.encode() for name, text in files.items()})
            (place.work / "node_modules").symlink_to(self.toolchain / "node_modules")
            argv = ("node", str(self.toolchain / "picture.mjs"))
            stdin = json.dumps(job).encode()
            command = Command(argv, place, _SECONDS, BROWSER_LIMITS, stdin=stdin, readable=readable, graded=True)
            done = await self.sandbox.run(command)
        if done.stop != "exited":
            return Picture(problem=stopped_by_limit(done).error or done.stop)
        return read_picture(done.stdout) or Picture(problem=f"the browser gave no picture: {last_output(done)}")


def read_picture(printed: bytes) -> Picture | None:
    """Return the picture in the last line that was printed, encoded again; None if there is none."""
    lines = printed.splitlines()
    try:
        found = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    if isinstance(problem := found.get("problem"), str) and problem:
        return Picture(problem=without_colours(problem))
    if not isinstance(encoded := found.get("png"), str):
        return None
    try:
        return Picture(png=encode_again(base64.b64decode(encoded, validate=True), width=WIDTH, height=HEIGHT))
    except (binascii.Error, ValueError, BadPictureError) as error:
        return Picture(problem=f"the browser gave no picture that can be shown: {error}")
