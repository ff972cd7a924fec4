"""Carry out `bakeoff models serve`: offer an embedded model to other programs, as a server of the OpenAI API."""

import asyncio
import os
import subprocess
from collections.abc import Sequence

from bakeoff._kernel.text import visible
from bakeoff.cli.console import out, say
from bakeoff.cli.run_plan import INTERRUPTED
from bakeoff.errors import UsageError
from bakeoff.models.embedded import EmbeddedServer
from bakeoff.models.embedded.launch import EmbeddedEndpoint

_PREFIXES = ("OPENAI", "OPENAI_COMPATIBLE")


def serve_model(*, model: str, command: Sequence[str] | None) -> int:
    """Serve until the command has ended and return its exit code; without a command, until Ctrl-C."""
    try:
        return asyncio.run(_serve(model.removeprefix("local:"), command or ()))
    except KeyboardInterrupt:
        return INTERRUPTED if command else 0


async def _serve(model: str, command: Sequence[str]) -> int:
    async with EmbeddedServer(model, say=say).open() as endpoint:
        if command:
            return await asyncio.to_thread(run_with, endpoint, command)
        for name, value in variables(endpoint).items():
            out().print(f"export {name}={visible(value)}", soft_wrap=True)
        say(f"{endpoint.model_name} is served until Ctrl-C; the lines above are for another terminal")
        await asyncio.Event().wait()
        return 0


def run_with(endpoint: EmbeddedEndpoint, command: Sequence[str]) -> int:
    """Run a command that finds the server, and return its exit code."""
    try:
        return subprocess.run(command, env={**os.environ, **variables(endpoint)}, check=False).returncode
    except OSError as error:
        raise UsageError(f"{command[0]!r} cannot be started: {error.strerror}") from error


def variables(endpoint: EmbeddedEndpoint) -> dict[str, str]:
    """Return the variables by which clients find the server."""
    values = {"BASE_URL": endpoint.base_url, "API_KEY": endpoint.api_key}
    return {f"{prefix}_{name}": value for prefix in _PREFIXES for name, value in values.items()}
