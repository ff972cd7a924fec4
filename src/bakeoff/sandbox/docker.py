"""Run commands in containers, with any docker- or podman-compatible client.

The supervisor runs the client, and removes the container by name even after a crash.
"""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bakeoff.errors import InfraError
from bakeoff.protocols import Command, CommandResult
from bakeoff.sandbox.bubblewrap import INSIDE, signals_as_negative
from bakeoff.sandbox.places import name_user, one_command_at_a_time
from bakeoff.sandbox.programs import DEFAULT_PATH, check_shown, passed_on, private
from bakeoff.sandbox.supervisor.confinement import SHARED_MEMORY_BYTES
from bakeoff.sandbox.supervisor_client import CommandEnd, Order, make_order, supervise
from bakeoff.sandbox.system_calls import docker_profile

CLIENT_VARIABLE, IMAGE_VARIABLE = "BAKEOFF_DOCKER", "BAKEOFF_DOCKER_IMAGE"
CLIENT_SETTINGS = ("PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME")
CLIENT_PREFIXES = ("DOCKER_", "CONTAINER_", "CONTAINERS_", "PODMAN_")
STATE = "{{.State.Status}} {{.State.OOMKilled}} {{.State.ExitCode}}"
PROBE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class DockerSandbox:
    """Runs each command in a new container. The image is fixed by its id, not by a tag."""

    client: str
    image_id: str
    cpus: float

    @property
    def name(self) -> str:
        return "docker"

    async def run(self, command: Command) -> CommandResult:
        """Run a command in a new container. Raise `InfraError` if the engine fails."""
        with one_command_at_a_time(command.place):
            order = self.order(command, f"bakeoff-{secrets.token_hex(8)}")
            return judged(await supervise(order, command))

    def ask(self, *argv: str) -> str | None:
        """Return a command's output from a container without host access; None if it fails."""
        options = ["--rm", "--pull", "never", "--network", "none", "--read-only", "--cap-drop", "ALL"]
        options += ("--user", "1000:1000", "--tmpfs", "/tmp", "--env", "HOME=/tmp", "--workdir", "/tmp")  # noqa: S108
        container = f"bakeoff-{secrets.token_hex(8)}"
        words = [self.client, "run", "--name", container, *options, "--entrypoint", "", self.image_id, *argv]
        try:
            done = subprocess.run(
                words,
                env=client_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:  # the client has ended, but not its container
            remove = [self.client, "rm", "--force", container]
            subprocess.run(remove, env=client_environment(), capture_output=True, check=False)
            return None
        except OSError:
            return None
        return (done.stdout or done.stderr).decode(errors="replace") if done.returncode == 0 else None

    def order(self, command: Command, container: str) -> Order:
        """Return the order for the supervisor: run the client, inspect and remove the container."""
        check_shown(command)
        argv = (self.client, "run", "--name", container, *self.options(command), self.image_id, *command.argv)
        epilogue = [
            (self.client, "container", "inspect", "--format", STATE, container),
            (self.client, "rm", "--force", "--volumes", container),
        ]
        env = {**client_environment(), **passed_by_name(command)}
        return make_order(command, argv=argv, env=env, cwd="/", confined=False, epilogue=epilogue)

    def options(self, command: Command) -> Iterator[str]:
        """Yield the options of `docker run` for a command."""
        limits, place = command.limits, command.place
        user = place.uid if place.uid is not None else os.getuid()
        yield from ("--interactive", "--pull", "never", "--log-driver", "none", "--user", f"{user}:{user}")
        yield from ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
        yield from ("--pids-limit", str(limits.processes), "--cpus", str(self.cpus), "--ulimit", "core=0")
        yield from ("--memory", f"{limits.memory_mb}m", "--memory-swap", f"{limits.memory_mb}m")
        yield from ("--ulimit", f"fsize={(limits.disk_mb + 64) << 20}", "--shm-size", str(SHARED_MEMORY_BYTES))
        yield from ("--label", "bakeoff", "--hostname", "trial", "--workdir", str(INSIDE.work), "--entrypoint", "")
        if place.uid is not None:  # only with its own user are just its own processes counted
            yield from ("--ulimit", f"nproc={limits.processes}")
        # The host's network, as for `bwrap`, because our servers listen on loopback.
        yield from ("--network", "host" if command.network else "none")
        if Path(self.client).name.startswith("podman") and place.uid is None:
            yield from ("--userns", "keep-id")
        for outside, inside in ((place.work, INSIDE.work), (place.home, INSIDE.home), (place.tmp, INSIDE.tmp)):
            yield from ("--volume", f"{outside}:{inside}")
        for replaced, file in name_user(place, INSIDE.home).items():
            yield from ("--volume", f"{file}:{replaced}:ro")
        for path in command.readable:
            yield from ("--volume", f"{path}:{path}:ro")
        if command.graded:
            profile = place.home.parent / "seccomp.json"
            profile.write_text(docker_profile(), encoding="utf-8")
            yield from ("--security-opt", f"seccomp={profile}")
        for name, value in told(command).items():
            yield from ("--env", f"{name}={value}")
        for name in passed_by_name(command):
            yield from ("--env", name)


def told(command: Command) -> dict[str, str]:
    """Return the variables to write on the command line: not secret, or also used by the client."""
    ours = {**passed_on(command), "PATH": DEFAULT_PATH, **private(INSIDE)}
    return ours | {name: value for name, value in command.env.items() if name in ours or is_clients(name)}


def passed_by_name(command: Command) -> dict[str, str]:
    """Return all other variables, passed by environment, because command lines are public."""
    return {name: value for name, value in command.env.items() if name not in told(command)}


def is_clients(name: str) -> bool:
    """Return True if a variable configures the docker or podman client."""
    return name in CLIENT_SETTINGS or name.startswith(CLIENT_PREFIXES)


def client_environment() -> dict[str, str]:
    """Return the variables that the client needs, which the container does not get."""
    return {name: value for name, value in os.environ.items() if is_clients(name)}


def judged(finished: CommandEnd) -> CommandResult:
    """Return the result of a container, corrected by the engine's report.

    The engine knows the command's own exit code, and whether memory ran out. Raise `InfraError` if
    the container did not start.
    """
    completed = signals_as_negative(finished.completed)
    status, out_of_memory, exit_code = [*finished.epilogue[0].split(), "", "", ""][:3]
    if completed.stop != "exited":
        return completed
    if status not in {"exited", "stopped", "dead"} and completed.exit_code not in {126, 127}:
        text = completed.stderr.decode(errors="replace").strip() or f"exit code {completed.exit_code}"
        raise InfraError(f"the container was not started: {text}")
    if out_of_memory == "true":
        return replace(completed, stop="memory")
    if exit_code.isdigit():
        return signals_as_negative(replace(completed, exit_code=int(exit_code)))
    return completed


def find_client() -> str | None:
    """Return the path of the client: the configured one, docker or podman; None if missing."""
    wanted = os.environ.get(CLIENT_VARIABLE)
    return next(filter(None, map(shutil.which, [wanted] if wanted else ["docker", "podman"])), None)


def way_out() -> str:
    """Return the steps that make the sandbox available."""
    name_image = f"set {IMAGE_VARIABLE} to a local image"
    if find_client() is None:
        return f"`apt-get install docker.io`, start its engine, and {name_image}"
    return f"see that its engine runs, and {name_image}" if os.environ.get(IMAGE_VARIABLE) else name_image


def find_docker() -> tuple[DockerSandbox | None, str]:
    """Return the sandbox and a sentence about it. It is None if there is no engine or image."""
    client = find_client()
    if client is None:
        return None, f"{os.environ.get(CLIENT_VARIABLE) or 'docker or podman'} is not installed"
    image = os.environ.get(IMAGE_VARIABLE)
    if not image:
        return None, f"{client} is there, but {IMAGE_VARIABLE} names no image"
    try:
        asked = subprocess.run(
            [client, "image", "inspect", "--format", "{{.Id}}", image],
            env=client_environment(),
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return None, f"{client} does not answer: {problem}"
    if asked.returncode != 0:
        return None, f"{client} has no image {image!r}: {asked.stderr.strip()}"
    image_id = asked.stdout.strip()
    return DockerSandbox(client, image_id, float(min(2, os.cpu_count() or 1))), f"image {image} ({image_id[:19]})"
