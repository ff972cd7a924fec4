"""A project with keys in all places, and everything that leaves Bakeoff there: printed, written, served."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

from tests.canaries.encodings import BOUNDED_ENCODINGS, ENCODINGS
from tests.canaries.sources import FILES, LOGIN, VARIABLES, Source
from tests.warm_bakeoff import WarmBakeoff

FORMATS = ("csv", "parquet", "inspect", "junit", "github", "markdown", "badge")


@dataclass(frozen=True, slots=True)
class Output:
    """Bytes that left Bakeoff, and where."""

    door: str
    place: str
    data: bytes


@dataclass
class World:
    """A project with keys in all places, the peers that repeat them, and what came out.

    Attributes:
        folder: Holds the home, the temporary folder, and the repository with the project.
        sources: The keys that are planted.
        warm: Runs commands in forks of a process that has made its imports.
        long: Use every command and encoding, not only the commands that make new outputs and two encodings.
        outputs: What was printed, served and sent until now.
    """

    folder: Path
    sources: Sequence[Source]
    warm: WarmBakeoff
    long: bool = True
    outputs: list[Output] = field(default_factory=list)
    _seen: dict[Path, tuple[int, int]] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.folder / "repository" / "project"

    def said(self, without: Sequence[Source] = ()) -> dict[str, str]:
        """Return a text for each encoding, with the keys of all sources but some, alone and as they were planted."""
        repeated = [source for source in self.sources if source not in without]
        return {
            name: "\n".join(
                f"[{number}] {encode(text)}"
                for number, source in enumerate(repeated)
                for text in dict.fromkeys((source.key, source.planted))
            )
            for name, encode in ENCODINGS.items()
            if self.long or name in BOUNDED_ENCODINGS
        }

    def build(self) -> None:
        """Write the project, the home and the files with keys."""
        for folder in (self.project, self.folder / "home" / ".canary", self.folder / "tmp", self.folder / "outside"):
            folder.mkdir(parents=True)
        for path, source in FILES.items():
            (self.folder / "repository" / path).write_text(f"{source.name}={source.planted}\n")
        (self.folder / "home" / ".canary" / "login.json").write_text(LOGIN.planted)
        (self.folder / "repository" / ".git").mkdir()
        self.spoken.write_text(json.dumps(self.said()))

    @property
    def spoken(self) -> Path:
        """Return the file from which code of the project reads what to repeat. It is not output."""
        return self.folder / "outside" / "spoken.json"

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_", "BAKEOFF_"))
        }
        planted = {name: source.planted for name, source in VARIABLES.items() if source in self.sources}
        own = {"HOME": "home", "TMPDIR": "tmp", "XDG_STATE_HOME": "home/state", "XDG_CACHE_HOME": "home/cache"}
        places = {name: str(self.folder / place) for name, place in own.items()}
        return {**kept, **planted, **places, "NO_PROXY": "*", "CANARY_FILE": str(self.spoken), **more}

    def run(
        self,
        door: str,
        *words: str,
        codes: Sequence[int] = (0, 1),
        name: str = "",
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Run a program in the project, and keep what it prints and writes.

        Raises `AssertionError` for another exit code than these: then, keys were not repeated.
        """
        if words[0] == sys.executable:
            done = subprocess.run(
                words,
                cwd=self.project,
                env=self.environment(env or {}),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=300,
                check=False,
            )
        else:
            done = self.warm.run(*words, cwd=self.project, env=self.environment(env or {}), timeout=300)
        called = name or " ".join(words[:2])
        for stream, data in (("stdout", done.stdout), ("stderr", done.stderr)):
            self.outputs.append(Output(door, f"{stream} of {called}", data.encode()))
        self.keep_files(door)
        said = f"{done.stdout[-1500:]!r} {done.stderr[-1500:]!r}"
        assert done.returncode in codes, f"{called} exited with {done.returncode}: {said}"

    def keep_files(self, door: str) -> None:
        """Keep each file that is new or has changed."""
        for path in sorted(self.folder.rglob("*")):
            if path.is_dir() or path.is_symlink() or path.suffix == ".pyc" or path.is_relative_to(self.spoken.parent):
                continue
            about = path.stat()
            if self._seen.get(path) != (about.st_mtime_ns, about.st_size):
                self._seen[path] = (about.st_mtime_ns, about.st_size)
                self.outputs.append(Output(door, str(path.relative_to(self.folder)), path.read_bytes()))
                self.outputs.append(Output(door, "names of files", str(path.relative_to(self.folder)).encode()))

    def ignore_files(self) -> None:
        """Take the files that are there now for input."""
        before = len(self.outputs)
        self.keep_files("")
        del self.outputs[before:]


def after_run(world: World, door: str, results: str) -> None:
    """Have the commands that show or convert a run do so, and ask the viewer for its pages."""
    options = ("--results", results)
    world.run(door, "runs", "show", *options)
    world.run(door, "report", *options, "--no-open", "--output", f"{door}.html")
    world.run(door, "index", *options)
    for format in FORMATS if world.long else ("csv",):
        world.run(door, "export", *options, "--format", format, "--output", f"{door}.{format}", codes=(0, 2))
    if world.long:
        world.run(door, "runs", "list", *options)
        world.run(door, "runs", "show", *options, "--json")
        world.run(door, "runs", "check", *options)
        world.run(door, "build", *options)
        world.run(door, "leaderboard", *options, codes=(0, 1, 2, 3))
        world.run(door, "compare", "latest", "latest", *options, codes=(0, 1, 2, 3))
        world.run(door, "rescore", *options, "--no-open", codes=(0, 1, 2, 3))
        world.run(door, "export", *options, "--format", "csv", name="export to stdout")
    view(world, door, results)


def view(world: World, door: str, results: str) -> None:
    """Keep what the viewer answers: the index, each run, and the start of the streams of events."""
    command = [sys.executable, "-m", "bakeoff", "view", "--results", results, "--no-open"]
    with subprocess.Popen(
        command, cwd=world.project, env=world.environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as viewer:
        assert viewer.stdout is not None
        line = viewer.stdout.readline()
        try:
            address = next(word for word in line.decode().split() if word.startswith("http://"))
            base, _, token = address.partition("/?")
            runs = [path.parent.name for path in (world.project / results / "runs").glob("*/plan.json")]
            opener = build_opener(HTTPCookieProcessor())  # the token becomes a cookie
            for page in (f"/?{token}", *(f"/runs/{name}" for name in runs)):
                with opener.open(base + page, timeout=60) as answer:
                    world.outputs.append(Output(door, f"viewer{page}", answer.read() + str(answer.headers).encode()))
            for page in ("/events", *(f"/runs/{name}/events" for name in runs)):
                with opener.open(base + page, timeout=60) as answer:
                    world.outputs.append(Output(door, f"viewer{page}", answer.read1(1 << 20)))
        finally:
            viewer.terminate()
            rest, errors = viewer.communicate(timeout=30)
        world.outputs.append(Output(door, "stdout of view", line + rest))
        world.outputs.append(Output(door, "stderr of view", errors))
