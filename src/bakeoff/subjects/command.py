"""Run a program of the user as a subject. It gets the prompt, and its output is the answer."""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from bakeoff._kernel.environment import filled, read_environment, variables_in
from bakeoff._kernel.files import with_home
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.threads import call
from bakeoff.errors import InfraError, SubjectError, SubjectTimeout, TrialError, UsageError
from bakeoff.plan import SubjectSpec, describe, read_options
from bakeoff.protocols import Command, CommandResult, Needs, Task
from bakeoff.record import Transcript
from bakeoff.sandbox.bubblewrap import BubblewrapSandbox, judged
from bakeoff.sandbox.confinement import UserProgram, command_in, unconfined_command
from bakeoff.sandbox.docker import find_docker
from bakeoff.sandbox.places import SandboxedWorkspace
from bakeoff.sandbox.process import ProcessSandbox
from bakeoff.sandbox.programs import search_path
from bakeoff.sandbox.supervisor_client import SupervisorLost, supervise
from bakeoff.storage.redaction import secrets_in

PROMPT = "{prompt}"
"""Stands for the prompt in the arguments."""

_MAX_WORD_LENGTH = 131_000  # bytes; Linux starts no program with an argument of 128 KiB
_LAST_WORDS = 2000
_NOT_FOUND = 127


class CommandOptions(FrozenModel):
    """The options of a command, as in a plan."""

    argv: tuple[str, ...] = Field(min_length=1)
    input: Literal["stdin", "argument"] = "stdin"
    env: dict[str, str] = Field(default={}, description="`${NAME}` is that variable's value")
    folder: Path = Field(default=Path(), description="the folder that it starts in")
    sandbox: Literal["auto", "none"] = "auto"


@dataclass(frozen=True, slots=True)
class CommandSubject:
    """A program that is started for each prompt, by default in a sandbox.

    The program can use the network, and read its start folder and the paths in its arguments. It
    can write only to private folders, and sees only the variables in `env`.
    """

    options: CommandOptions
    environment: Mapping[str, str] = field(repr=False)
    name: str

    @property
    def needs(self) -> Needs:
        return Needs(workspace=self.options.sandbox != "none")

    @classmethod
    def from_spec(cls, spec: SubjectSpec) -> Self:
        """Read the options and the variables in `env`. Raise `UsageError` if one is not set."""
        options, environment = read_options(spec, CommandOptions), read_environment()
        if missing := [name for name in variables_in(options.env.values()) if name not in environment]:
            raise UsageError(
                f"{describe(spec)}: ${{{missing[0]}}} is not set: set {missing[0]} in the environment, in .env or in "
                ".env.local"
            )
        return cls(options, environment, spec.name)

    def lacks(self) -> list[str]:
        return []

    def check_program(self) -> None:
        """Raise UsageError if this machine does not have the program."""
        if self.options.sandbox == "none":
            searched = os.get_exec_path({**os.environ, **self._env()})
        elif find_docker()[0] is None:
            searched = search_path(os.environ).split(os.pathsep)
        else:  # an image has its own programs
            return
        _check_program(self.options.argv[0], self.options.folder, searched)

    def secrets(self) -> dict[str, str]:
        named = variables_in(self.options.env.values())
        return {**secrets_in(self._env()), **secrets_in({name: self.environment[name] for name in named})}

    def offline(self) -> Self:
        return self

    async def attempt(self, task: Task) -> Transcript:
        """Run the program on the prompt. A bad exit code is the subject's failure."""
        argv, stdin = self._input(task.prompt)
        if self.options.sandbox == "none":
            done = await self._unconfined(argv, stdin, task)
        else:
            done = await self._confined(argv, stdin, task)
        output = done.stdout.decode(errors="replace")
        if done.ok:
            return Transcript(output=output.removesuffix("\n"))
        failure = self._failure(argv, done, output)
        failure.transcript = Transcript(output=output)
        raise failure

    def _failure(self, argv: Sequence[str], done: CommandResult, output: str) -> TrialError:
        said = done.stderr.decode(errors="replace").strip()[-_LAST_WORDS:]
        if done.stop == "timeout":
            return SubjectTimeout(f"{argv[0]} did not end in time")
        if done.exit_code == _NOT_FOUND and not output:
            return InfraError(f"{argv[0]!r} cannot be started: {said or 'it was not found'}", permanent=True)
        why = f"exit code {done.exit_code}" if done.stop == "exited" else f"ended by the {done.stop} limit"
        return SubjectError(": ".join(filter(None, [argv[0], why, said or ("" if output else "it said nothing")])))

    def _input(self, prompt: str) -> tuple[tuple[str, ...], bytes]:
        """Return arguments and standard input for a prompt."""
        argv = self.options.argv
        if self.options.input == "stdin":
            return argv, prompt.encode()
        if "\0" in prompt or len(prompt.encode()) > _MAX_WORD_LENGTH:
            raise SubjectError("the prompt cannot be an argument of a program: use `input: stdin`")
        if any(PROMPT in word for word in argv):
            return tuple(word.replace(PROMPT, prompt) for word in argv), b""
        return (*argv, prompt), b""

    def _env(self) -> dict[str, str]:
        return {name: str(filled(value, self.environment)) for name, value in self.options.env.items()}

    async def _confined(self, argv: tuple[str, ...], stdin: bytes, task: Task) -> CommandResult:
        workspace = task.workspace
        if not isinstance(workspace, SandboxedWorkspace):
            raise InfraError("a command needs a sandboxed workspace", permanent=True)
        seconds, sandbox = task.limits.attempt_seconds, workspace.sandbox
        if not isinstance(sandbox, BubblewrapSandbox | ProcessSandbox):  # a container has its own programs
            return await workspace.run(argv, seconds=seconds, env=self._env(), network=True, stdin=stdin)
        # Only the words of the plan, not the prompt, decide which paths the program can read.
        plan = self.options.argv
        program = UserProgram(f"command {self.name!r}", plan, self._env(), self.options.folder)
        confined, command = await call(command_in, program, sandbox, workspace.place)
        started: Command = replace(
            command,
            argv=(command.argv[0], *argv[1:]),
            seconds=seconds,
            limits=task.limits,
            stdin=stdin,
        )
        if started.place.uid is None and isinstance(confined, BubblewrapSandbox):
            # As for MCP servers, folders for root only are read by root without capabilities.
            return judged(await supervise(confined.order(started), started))
        done: CommandResult = await confined.run(started)
        return done

    async def _unconfined(self, argv: tuple[str, ...], stdin: bytes, task: Task) -> CommandResult:
        order, command = unconfined_command(
            argv,
            env={**os.environ, **self._env()},
            cwd=self.options.folder,
            seconds=task.limits.attempt_seconds,
            stdin=stdin,
            output_kb=task.limits.output_kb,
        )
        try:
            return (await supervise(order, command)).completed
        except SupervisorLost as problem:  # the program may have killed it, which is no excuse
            return problem.so_far
        except InfraError as problem:
            raise InfraError(str(problem), permanent=True) from problem


def _check_program(program: str, folder: Path, searched: Sequence[str]) -> None:
    path = folder / with_home(program)
    if "/" not in program:
        if shutil.which(program, path=os.pathsep.join(searched)):
            return
        if path.is_file():
            raise UsageError(f"{program!r} is not on PATH: write './{program}', or its interpreter before it")
        raise UsageError(f"there is no program {program!r} on PATH: {_near_program(program, searched)}")
    if not path.is_file():
        raise UsageError(f"there is no program {str(path)!r}: {_near_program(path.name, [str(path.parent)])}")
    if not os.access(path, os.X_OK):
        raise UsageError(f"{program!r} is not executable: run `chmod +x {path}`, or write its interpreter before it")


def _near_program(name: str, folders: Sequence[str]) -> str:
    names: set[str] = set()
    for folder in folders:
        with suppress(OSError):
            names.update(path.name for path in Path(folder).iterdir())
    near = get_close_matches(name, sorted(names - {name}), n=1, cutoff=0.75)
    return f"did you mean {near[0]!r}?" if near else "install it, or write its whole path"
