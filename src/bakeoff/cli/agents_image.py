"""`bakeoff agents image build`: the image for the docker rung."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bakeoff.cli.console import err, out
from bakeoff.doors.exercises.agents import known_agents
from bakeoff.doors.exercises.image import CONTAINERFILE, plan_image, shell_words
from bakeoff.errors import InfraError, UsageError
from bakeoff.report.words import visible
from bakeoff.sandbox.docker import CLIENT_VARIABLE, IMAGE_VARIABLE, find_client

ENGINES = ("docker", "podman")


def build_image(engine: str | None, tag: str, wanted: Sequence[str], files: Sequence[Path], *, dry_run: bool) -> None:
    """Have the engine build it, or show what it would be told."""
    if engine is not None and engine not in ENGINES:
        raise UsageError(f"--engine {engine!r:.100} is not one of {', '.join(ENGINES)}")
    image = plan_image(known_agents(files), wanted, tag)
    if dry_run:
        out().file.write(f"{shell_words(image.command(engine or find_client() or ENGINES[0]))}\n\n")
        out().file.write(CONTAINERFILE.read_text("utf-8"))
        return
    client = _client(engine)
    try:
        done = subprocess.run(image.command(client), stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        raise UsageError(f"{client} cannot be started: {error}") from error
    if done.returncode != 0:
        raise InfraError(f"{client} did not build the image (exit code {done.returncode}); what it said is above")
    chosen = f"{CLIENT_VARIABLE}={engine} " if engine else ""
    err().print(f"use it: {chosen}{IMAGE_VARIABLE}={visible(image.tag)} bakeoff agents run --sandbox docker --agent …")


def _client(engine: str | None) -> str:
    found = shutil.which(engine) if engine else find_client()
    if found is None:
        raise UsageError(
            f"{engine or 'docker or podman'} is not installed, and an image is built by it: `apt-get install "
            f"{'podman' if engine == 'podman' else 'docker.io'}`; --dry-run shows what would be built"
        )
    return found
