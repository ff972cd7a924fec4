"""Install pinned packages into this environment, and say all the while what it waits for: `install.py PINS [WHAT …]`.

Each WHAT is then installed without dependencies, built with what is there. uv is used where it is on PATH.
"""

import compileall
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

EVERY = 5.0  # seconds between two lines where there is no terminal
_NOW = re.compile(
    r"^(Collecting|Processing|Downloading|Installing collected packages|Building|Using cached|Installed) ?(\S*)"
)
_TESTS = re.compile(r"[/\\]tests?[/\\]")


def main() -> int:
    pins, *projects = sys.argv[1:]
    parts = [["--require-hashes", "-r", pins]]
    if projects:
        parts.append(["--no-deps", "--no-build-isolation", *(word for each in projects for word in ("-e", each))])
    total = len(re.findall(r"(?m)^[A-Za-z0-9]\S*==", Path(pins).read_text("utf-8")))
    started = time.monotonic()
    for words in parts:
        if code := install(words, total, started):
            return code
    # Sandboxes cannot keep bytecode here, so all of it is made now, on every core; pip would use one.
    with Seen(total, started, "compiling"):
        compileall.compile_dir(sysconfig.get_path("purelib"), rx=_TESTS, quiet=2, workers=0)
    print(f"✓ installed in {time.monotonic() - started:.0f} s", flush=True)
    return 0


def install(words: list[str], total: int, started: float) -> int:
    """Install with uv, and with pip where there is no uv or its settings lack the index that pip has."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--no-compile", *words]
    if uv := shutil.which("uv"):
        if run([uv, "pip", "install", "--python", sys.executable, *words], total, started, quiet=True) == 0:
            return 0
        print("→ uv could not; trying pip", flush=True)
    return run(pip, total, started)


def run(command: list[str], total: int, started: float, *, quiet: bool = False) -> int:
    """Run an installer. A terminal shows its own progress; elsewhere a line every few seconds says how far it is."""
    if sys.stdout.isatty() and sys.stderr.isatty():
        return subprocess.run(command, check=False).returncode
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    seen = Seen(total, started)
    with seen:
        assert child.stdout is not None
        for line in child.stdout:
            seen.read(line)
    code = child.wait()
    if code and not quiet:
        print("".join(seen.lines[-30:]), end="", file=sys.stderr, flush=True)
    return code


class Seen:
    """Read what an installer prints, and tell every few seconds how far it is."""

    def __init__(self, total: int, started: float, now: str = "asking the index") -> None:
        self.lines: list[str] = []
        self.total, self.started = total, started
        self.packages: set[str] = set()
        self.now = now
        self._ended = threading.Event()
        self._teller = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> None:
        self._teller.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._teller.join()

    def read(self, line: str) -> None:
        self.lines.append(line)
        if found := _NOW.match(line.strip()):
            doing, what = found[1], re.split(r"[=<>(;\[]|-\d", found[2].rsplit("/", 1)[-1])[0]
            if doing in {"Collecting", "Processing"}:
                self.packages.add(what)
            self.now = "writing files" if doing.startswith("Installing") else f"{doing.lower()} {what}"

    def _tell(self) -> None:
        while not self._ended.wait(EVERY):
            seconds = time.monotonic() - self.started
            so_far = f"{len(self.packages)} of about {self.total} packages, " if self.packages else ""
            print(f"  {seconds:4.0f} s: {so_far}{self.now}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
