"""Attack Bakeoff in every way there is, print what became of it, and fail on any difference from SECURITY.md.

Started as root, the parts that depend on the user run twice: as root, and as a user without any rights. Started as a
user, only that half runs.
"""

import argparse
import contextlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from scripts.hostile.as_user import free_uid, new_home, processes_of, run_as_user
from scripts.hostile.options import Options
from scripts.hostile.rows import Findings, Promises, Row, differences, markdown, read_promises, table
from tests.sandbox.docker_engine import IMAGE, NoEngine, engine_with_image

from bakeoff._kernel.environment import cache_folder

# In this order.
PARTS = {
    "escapes": "scripts.hostile.escapes:run",
    "channels": "scripts.hostile.channels:run",
    "deaths": "scripts.hostile.deaths:run",
    "cheats": "scripts.hostile.cheats:run",
    "faults": "scripts.hostile.faults:run",
    "flips": "scripts.hostile.provided:flips",
    "canaries": "scripts.hostile.provided:canaries",
    "fuzz": "scripts.hostile.fuzz:run",
    "servers": "scripts.hostile.provided:servers",
    "soak": "scripts.hostile.soak:run",
}
BOTH_HALVES = ("escapes", "channels", "deaths", "cheats", "faults")  # what these find depends on the user
_PROJECT = Path(__file__).resolve().parents[2]
_SECURITY = _PROJECT / "SECURITY.md"


def main() -> None:
    """Run the campaign. Exit with 0 if everything is as promised, else with 1."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of Pythons would compile everything anew
    with tempfile.TemporaryDirectory(prefix="bakeoff-state-") as state:
        os.environ["XDG_STATE_HOME"] = state  # which runs were made here is not for the user to keep
        _run_campaign()


def _run_campaign() -> None:
    asked, options = _arguments()
    parts = asked.part or list(PARTS)
    if asked.findings:  # the half of a user, started below
        found = _merged([_run_part(part, options) for part in parts])
        asked.findings.write_text(json.dumps(asdict(found)))
        return
    started = time.monotonic()
    with _docker(options, parts):
        found = _merged([_both_halves(part, options) for part in parts])
    promises = read_promises(_SECURITY.read_text(encoding="utf-8")) if _SECURITY.is_file() else Promises()
    if asked.markdown:
        print(*markdown(found.rows), sep="\n")
    whole = not (asked.part or asked.sample or asked.rung or asked.grader or asked.attack) and os.geteuid() == 0
    _print(found, time.monotonic() - started)
    wrong = [*found.failures, *differences(promises, found, whole=whole)]
    print(*(f"✗ {sentence}" for sentence in wrong), sep="\n") if wrong else print("✓ everything is as promised")
    sys.exit(1 if wrong else 0)


def _arguments() -> tuple[argparse.Namespace, Options]:
    parser = argparse.ArgumentParser(prog="hostile", description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be given several times")
    parser.add_argument("--sample", action="store_true", help="the bounded form: less of everything, in minutes")
    parser.add_argument("--quiet", action="store_true", help="print only what succeeds, and the summary")
    parser.add_argument("--rung", action="append", choices=["auto", "process", "bwrap", "docker"])
    parser.add_argument("--grader", action="append", help="for cheats: only this grader")
    parser.add_argument("--attack", action="append", help="for escapes and cheats: only this attack")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1, help="for faults, flips, fuzz and soak")
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the long form's kills, inputs and minutes")
    parser.add_argument("--markdown", action="store_true", help="print the table as SECURITY.md has it, too")
    parser.add_argument("--findings", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    options = Options(
        sample=asked.sample,
        quiet=asked.quiet,
        rungs=tuple(asked.rung or ()),
        graders=tuple(asked.grader or ()),
        attacks=tuple(asked.attack or ()),
        jobs=asked.jobs,
        seed=asked.seed,
        scale=asked.scale,
    )
    return asked, options


def _both_halves(part: str, options: Options) -> Findings:
    """Run a part as ourselves, and if we are root and it matters, also as a user."""
    found = [_run_part(part, options)]
    if part in BOTH_HALVES and not (part in ("cheats", "channels", "deaths") and options.sample):
        if options.user == "root":
            found.append(_as_user(part, options))
        else:
            print(f"{part}: only as a user, because this is not root", flush=True)
    return _merged(found)


def _run_part(part: str, options: Options) -> Findings:
    started = time.monotonic()
    print(f"→ {part}, as {options.user}", flush=True)
    module, _, name = PARTS[part].partition(":")
    found: Findings = getattr(importlib.import_module(module), name)(options)
    print(f"  {part}, as {options.user}: {time.monotonic() - started:.0f} s", flush=True)
    return found


def _as_user(part: str, options: Options) -> Findings:
    uid = free_uid()
    home = new_home(uid)
    try:
        file = home / "findings.json"
        _share_engine(uid)
        _share_cache(home, uid)
        argv = [sys.executable, "-m", "scripts.hostile", "--part", part, "--findings", str(file), *_words(options)]
        code = run_as_user(argv, home=home, uid=uid, env=os.environ, readable=[])
        left = processes_of(uid)
        failures = [f"{part} as a user left processes: {left}"] if left else []
        if code != 0 or not file.is_file():
            return Findings(failures=[*failures, f"{part} as a user ended with {code} and no findings"])
        kept = json.loads(file.read_text())
        found = Findings([Row(**row) for row in kept["rows"]], kept["figures"], kept["failures"])
        return replace(found, failures=[*found.failures, *failures])
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _words(options: Options) -> Iterator[str]:
    yield from ("--jobs", str(options.jobs), "--seed", str(options.seed), "--scale", str(options.scale))
    yield from (["--sample"] if options.sample else []) + (["--quiet"] if options.quiet else [])
    for name, values in (("--rung", options.rungs), ("--grader", options.graders), ("--attack", options.attacks)):
        for value in values:
            yield from (name, value)


def _share_engine(uid: int) -> None:
    """Let the user call an engine that we started. That of the machine stays as it is."""
    socket = Path(os.environ.get("DOCKER_HOST", "").removeprefix("unix://"))
    if socket.name == "socket" and socket.exists():
        socket.parent.chmod(0o711)
        os.chown(socket, uid, uid)


def _share_cache(home: Path, uid: int) -> None:
    """Give the user what we have installed and downloaded, so that nothing is installed twice."""
    target = home / ".cache" / "bakeoff"
    target.parent.mkdir()
    if cache_folder().is_dir():
        shutil.copytree(cache_folder(), target, symlinks=True, ignore=_unfinished)
    subprocess.run(["chown", "-R", "--no-dereference", f"{uid}:{uid}", str(target.parent)], check=True)


def _unfinished(folder: str, names: list[str]) -> list[str]:
    """Return the installations that another process is making right now."""
    return [name for name in names if name.startswith(".")] if Path(folder).name == "toolchains" else []


@contextlib.contextmanager
def _docker(options: Options, parts: Sequence[str]) -> Iterator[None]:
    """Have a docker engine with an image for the parts that use sandboxes."""
    if not {"escapes", "channels", "cheats"} & set(parts) or (options.rungs and "docker" not in options.rungs):
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            os.environ["DOCKER_HOST"] = stack.enter_context(engine_with_image())
            os.environ["BAKEOFF_DOCKER_IMAGE"] = IMAGE
        except NoEngine as problem:
            print(f"without docker: {problem}", flush=True)
        yield


def _merged(parts: Sequence[Findings]) -> Findings:
    """Return the findings of several parts as one. The same figure of both halves is added up."""
    figures: dict[str, float] = {}
    for found in parts:
        for name, value in found.figures.items():
            figures[name] = figures.get(name, 0) + value
    rows = [row for found in parts for row in found.rows]
    return Findings(rows, figures, [sentence for found in parts for sentence in found.failures])


def _print(found: Findings, seconds: float) -> None:
    print()
    print(*table(found.rows), sep="\n") if found.rows else None
    print()
    width = max([len(name) for name in found.figures], default=0)
    print(*(f"{name:{width}} {value:>12,.10g}" for name, value in found.figures.items()), sep="\n")
    print(f"{'seconds':{width}} {seconds:>12.0f}\n")


if __name__ == "__main__":
    main()
