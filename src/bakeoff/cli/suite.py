"""Carry out `bakeoff suite new`: write a small suite that verifies, to be changed into one's own."""

import shlex
import shutil
from pathlib import Path

from bakeoff import bundled
from bakeoff._kernel.text import visible
from bakeoff.cli.console import out
from bakeoff.doors.components.suites import DEFAULT_FOLDER
from bakeoff.errors import UsageError


def new(*, name: str, framework: str, suites: Path | None) -> int:
    """Copy the template of a framework into a new folder."""
    if Path(name).name != name or name.startswith(".") or not name.isprintable() or not name.strip():
        raise UsageError(f"{name!r} is no name for a suite: it becomes a folder, such as {'my-counter'!r}")
    folder = (suites or DEFAULT_FOLDER) / name
    if folder.exists():
        raise UsageError(f"{folder} exists already: choose another name, or remove it first")
    template = Path(bundled.__file__).parent / "templates" / framework
    try:
        shutil.copytree(template, folder, copy_function=shutil.copyfile)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}") from error
    words = ["bakeoff", "verify", *(["--suites", str(suites)] if suites else []), "--suite", name, "--watch"]
    for path in sorted(folder.iterdir()):
        out().print(f"wrote {visible(str(path))}")
    out().print(f"Check it with `{visible(shlex.join(words), 1000)}`, and change it into yours.")
    return 0
