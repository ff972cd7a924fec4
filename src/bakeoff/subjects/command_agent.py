"""Run a command-line coding agent on a case (`cli-agent`), with a meter and several tries."""

import asyncio
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pydantic import Field, PositiveInt, ValidationError

from bakeoff._kernel.clock import run_until
from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.model import FrozenModel, first_problem
from bakeoff.errors import InfraError, TrialError, UsageError
from bakeoff.models.providers import known_providers
from bakeoff.plan import Case, Files, SubjectSpec, describe, read_options
from bakeoff.protocols import Needs, Resource, Sandbox, Task
from bakeoff.record import Transcript
from bakeoff.sandbox.bubblewrap import BubblewrapSandbox, shows
from bakeoff.sandbox.docker import DockerSandbox
from bakeoff.sandbox.places import SandboxedWorkspace
from bakeoff.sandbox.programs import program_path, program_roots
from bakeoff.sandbox.selection import inside
from bakeoff.sandbox.untrusted_files import matches_pattern
from bakeoff.storage.redaction import looks_random, secrets_in
from bakeoff.subjects.agent_definition import AgentDefinition, MeterRule, ProviderRule, Values
from bakeoff.subjects.agent_launch import AgentLaunch, Watch, carry_out, sandboxed
from bakeoff.subjects.agent_program import (
    StartedProgram,
    is_address,
    is_found_in,
    is_installed,
    login_files,
    login_secrets,
    try_to_start,
)
from bakeoff.subjects.agent_run import AgentRun, joined, with_run
from bakeoff.subjects.folder_changes import read_tree
from bakeoff.toolchains.commands import AgentPackages, BroughtFiles, OpenPackages

if TYPE_CHECKING:  # slow to import, and not needed by all agents
    from bakeoff.meter import OpenMeter, Upstream

CLI_AGENT = "cli-agent"
TESTS_TOOL = "tests"
"""The tool of a task that runs the tests on `files`. It returns their messages, or None if all passed."""

_HOME_PART = "home/"  # prefix of a treatment's files for HOME
_NOT_FOUND = 127
_CANNOT_WORK = re.compile(
    r"\bauth|log(?:ged)?[ -]?in\b|sign(?:ed)?[ -]?in\b|credential|api[ _-]?key|unauthori[sz]ed|\b40[13]\b|forbidden"
    r"|missing (?:optional )?dependency|cannot find (?:module|package)|no module named"
    r"|ENOTFOUND|ECONNREFUSED|connection (?:refused|error)|could not resolve",
    re.IGNORECASE,
)
"""Matches the words of an agent that lacks a login, a key, a part of itself or its provider."""
_MAX_START_SECONDS = 10.0  # an agent that ends later, even without a trace, has started
_MAX_FAILED_STARTS = 3  # in a row, before no further trial of the agent is started
_MAX_WORD_LENGTH = 131_000  # bytes; Linux starts no program with an argument of 128 KiB
_AGAIN = """\
# Another try

You have tried before, and the files here are what you left. The tests are right; do not change them. They say:"""


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """The values of `{sourceFiles}` and `{testFiles}` for a case, and packages for its tests."""

    sources: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    packages: AgentPackages | None = None
    answer: tuple[str, ...] = ()  # patterns of files to test before another try


@dataclass(slots=True)
class _Evidence:
    """What trials of this subject have shown about whether the agent works."""

    started: StartedProgram | None = None
    at_work: bool = False  # its model answered, or it ended well or late, or changed an answer
    failed_starts: int = 0
    models: set[str] = field(default_factory=set)  # that answered


class CliAgentOptions(FrozenModel):
    """The options of a command-line agent, as in a plan."""

    definition: dict[str, Any]
    provider: str
    model: str | None = None
    use_login: bool = False
    network: bool = False
    treatment: Files = Field(default={}, description="files that are laid over the workspace; over HOME in `home/`")
    tries: PositiveInt = Field(default=1, description="how often it may try, each time with what the tests said")


@dataclass(frozen=True, slots=True)
class CommandAgent:
    """An agent with one model of one provider."""

    definition: AgentDefinition
    provider: str
    model: str | None
    environment: Mapping[str, str] = field(repr=False)
    files: Mapping[str, TaskFiles] = field(default_factory=dict)
    watch: Watch | None = None
    use_login: bool = False
    network: bool = False
    treatment: Mapping[str, str] = field(default_factory=dict, repr=False)
    tries: int = 1
    only_recordings: bool = False
    sandbox: Callable[[], Sandbox] | None = field(default=None, repr=False)  # where trials will run, if known
    limited: bool = False  # the run has a budget, so usage must be counted
    evidence: _Evidence = field(default_factory=_Evidence, repr=False, compare=False)

    @classmethod
    def from_spec(
        cls,
        spec: SubjectSpec,
        files: Mapping[str, TaskFiles] | None = None,
        watch: Watch | None = None,
        sandbox: Callable[[], Sandbox] | None = None,
        *,
        limited: bool = False,
    ) -> "CommandAgent":
        """Build the agent of a spec.

        Args:
            spec: The spec. Its options contain the whole definition, so that plans need no
                other files.
            files: The files and packages of each case, by id.
            watch: Shows changes in a workspace while the agent works.
            sandbox: Makes the sandbox for trials, if known in advance.
            limited: True if the run has a budget, which requires a meter.
        """
        options = read_options(spec, CliAgentOptions)
        try:
            definition = AgentDefinition.model_validate(options.definition)
        except ValidationError as error:
            raise UsageError(f"{describe(spec)}: definition.{first_problem(error)}") from error
        definition.check_provider(options.provider)
        definition.check_meter(options.provider, known_providers())
        given = {"environment": read_environment(), "files": files or {}, **options.model_dump(exclude={"definition"})}
        return cls(definition, watch=watch, sandbox=sandbox, limited=limited, **given)

    # --- checks before the run -------------------------------------------------------------------

    def lacks(self) -> list[str]:
        """Return the unmet requirements of the agent."""
        missing = [] if self.use_login else self.definition.missing(self.provider, self.environment)
        way_out = "; or log in and add --use-login" if self.definition.home.login else ""
        found = [f"{names} is not set, which {self.provider} needs{way_out}" for names in missing]
        model = self.definition.lacks_model(self.model)
        return [
            *(self._lacks_program() or self._lacks_files()),
            *([model] if model else []),
            *(found or self._lacks_meter()),
        ]

    def check(self, case: Case) -> str | None:
        """Return a problem if a treatment's file would replace other files or be an answer."""
        rule = self.definition.meter.get(self.provider, MeterRule())
        ours = {
            *self.definition.files,
            *self.definition.home.files,
            *rule.files,
            *(self.definition.home.login if self.use_login else ()),
        }
        for name in self._treated_home:
            around = {str(parent) for parent in PurePosixPath(name).parents}
            if name in ours or around & ours or any(file.startswith(f"{name}/") for file in ours):
                return f"its treatment has {_HOME_PART + name!r}, which bakeoff writes itself: leave it out"
        for name in self._treated_workspace:
            around = {str(parent) for parent in PurePosixPath(name).parents}
            below = any(file.startswith(f"{name}/") for file in case.files)
            if name in case.files or around & case.files.keys() or below:
                return f"its treatment has {name!r}, which the exercise has too: leave it out"
            if matches_pattern(name, case.collect):
                return f"its treatment has {name!r}, which would be graded as part of the answer: move it into a folder"
        return None

    @property
    def _treated_home(self) -> dict[str, str]:
        """Return the treatment's files for HOME, where agents look for user settings."""
        inside = {name: text for name, text in self.treatment.items() if name.startswith(_HOME_PART)}
        return {name.removeprefix(_HOME_PART): text for name, text in inside.items()}

    @property
    def _treated_workspace(self) -> dict[str, str]:
        return {name: text for name, text in self.treatment.items() if not name.startswith(_HOME_PART)}

    def _lacks_program(self) -> list[str]:
        program, sandbox = self.definition.command[0], self.sandbox() if self.sandbox else None
        image = sandbox if isinstance(sandbox, DockerSandbox) else None  # a container has its own programs
        if is_installed(program, image):
            return []
        if image is not None:
            return [f"`{program}` is not in the image: `bakeoff agents image build --agent {self.definition.name}`"]
        shim = shutil.which(program)
        if shim is not None:
            return [f"`{program}` is only a shim, {shim}, with no program behind it: choose a version that has one"]
        return [f"`{program}` is not installed: {self.definition.install.hint}"]

    def _lacks_files(self) -> list[str]:
        """Return what to do about files that the command names but that the sandbox does not show."""
        sandbox, (program, *words) = self.sandbox() if self.sandbox else None, self.definition.command
        readable = program_roots(program_path(program) or program)
        told = []
        # Not `Path.is_file()`, which raises for a word that is a whole script.
        for path in (Path(word) for word in words if word.startswith("/") and os.path.isfile(word)):  # noqa: PTH113
            if isinstance(sandbox, DockerSandbox):
                hidden = sandbox.ask("test", "-e", str(path)) is None
            else:
                hidden = isinstance(sandbox, BubblewrapSandbox) and not shows(path, readable)
            if hidden:
                told.append(
                    f"{path} cannot be seen in the sandbox: write `files: {{{path.name}: {path}}}` into the agent's "
                    f"file, and `{{home}}/{path.name}` in its command"
                )
        return told

    def _lacks_meter(self) -> list[str]:
        """Return why the agent cannot be metered, and would get the real key and the network."""
        try:
            upstream = self.upstream
        except UsageError as error:
            return [f"it cannot be metered: {error}; or add --use-login to run it unmetered, with what it has"]
        if upstream is None and self.limited:
            return [f"it is not metered with {self.provider}, so nobody counts what it spends: leave out --max-cost"]
        return []

    def secrets(self) -> dict[str, str]:
        """Return keys, other variables that the agent receives, and secrets of its login."""
        given = self._set(self.definition.handed_over(self.provider))
        login = login_secrets(login_files(self.definition.home.login)) if self.use_login else {}
        others = {name: value for name, value in given.items() if not is_address(value)}
        return {**self._spelled_out(), **login, **others, **self._keys()}

    def _spelled_out(self) -> dict[str, str]:
        """Return the API keys that stand in the definition. It is then refused, because plans would store them."""
        env = {**self.definition.env, **(rule.env if (rule := self.definition.providers.get(self.provider)) else {})}
        spelled = {name: value for name, value in env.items() if "{" not in value}
        named = secrets_in(spelled)
        return {
            f"{self.definition.name}.env.{name}": named[name] for name in spelled if looks_random(named.get(name, ""))
        }

    def _keys(self) -> dict[str, str]:
        return self._set(self.definition.key_variables(self.provider))

    def _set(self, names: Iterable[str]) -> dict[str, str]:
        return {name: self.environment[name].strip() for name in names if self.environment.get(name, "").strip()}

    def offline(self) -> "CommandAgent":
        """Return an agent that uses recordings. It needs no key, but still the program."""
        agent = replace(self, only_recordings=True)
        name = self.definition.name
        if agent.upstream is None:
            raise UsageError(
                f"agent {name!r} is not metered with {self.provider}, so its model's answers are not recorded: "
                "leave out --replay strict"
            )
        if lacking := self._lacks_program():
            raise UsageError(f"agent {name!r}: {lacking[0]}")
        return agent

    @property
    def needs(self) -> Needs:
        shared: tuple[Resource, ...] = ()
        if self.upstream is not None:
            from bakeoff.meter import Meter

            shared = (Meter(),)
        packages = {known.packages.key: known.packages for known in self.files.values() if known.packages}
        return Needs(workspace=True, resources=(*shared, *packages.values()))

    @property
    def upstream(self) -> "Upstream | None":
        """Return the provider behind the meter, or None if the agent runs without a meter."""
        rule = self.definition.meter.get(self.provider)
        if rule is None or self.use_login:  # a login is not billed by tokens and has no key of ours
            return None
        from bakeoff.meter import upstream_of

        known = known_providers()[rule.upstream or self.provider]
        return upstream_of(known, self.environment, offline=self.only_recordings)

    # --- one trial --------------------------------------------------------------------------------------------------

    async def attempt(self, task: Task) -> Transcript:
        """Run the agent in the trial's workspace, with a meter if the provider supports it.

        Raise `InfraError` if the agent never started, or its model never answered.
        """
        workspace = sandboxed(task)
        version = (await self._started(task, workspace)).version
        brought = await self._bring_packages(task, workspace)
        await asyncio.to_thread(workspace.write, self._treated_workspace, runnable_scripts=True)
        upstream = self.upstream
        if upstream is None:

            async def launching(asked: Task) -> AgentLaunch:
                launch = await asyncio.to_thread(self._launch, asked, workspace, {})
                return replace(launch.with_packages(brought), network=True)

            run = await self._work(task, workspace, launching)
            await self._check_started(run, workspace, await launching(task))
            await self._check_unmetered(run, task, workspace)
            told = Transcript(output=run.stdout, metadata={"metered": False})
        else:
            run, told = await self._metered(task, workspace, upstream, brought)
        run = run.model_copy(update={"version": version, "metered": upstream is not None})
        return with_run(told, run)

    async def _started(self, task: Task, workspace: SandboxedWorkspace) -> StartedProgram:
        """Get the program's version once, outside of the agent's time limit."""
        if self.evidence.started is None:
            with task.clock.paused():
                self.evidence.started = await try_to_start(self.definition, workspace.sandbox)
        return self.evidence.started

    async def _bring_packages(self, task: Task, workspace: SandboxedWorkspace) -> BroughtFiles:
        """Put the packages for the case's tests, if any, into the workspace."""
        wanted = self.files.get(task.case_id, TaskFiles()).packages
        if wanted is None:
            return BroughtFiles()
        packages: OpenPackages = task.resources[wanted.key]
        files = await asyncio.to_thread(read_tree, workspace.folder)
        return await packages.bring(workspace.place, files.files)

    async def _metered(
        self, task: Task, workspace: SandboxedWorkspace, upstream: "Upstream", brought: BroughtFiles
    ) -> tuple[AgentRun, Transcript]:
        from bakeoff.meter import METER

        meter: OpenMeter = task.resources[METER]
        async with meter.open_trial(task, [upstream], place=workspace.place, worked=self.evidence.models) as trial:
            access = trial.access(workspace.sandbox.name, network=self.network)
            pointed = {"meterUrl": trial.base_url(access, upstream.name), "meterToken": trial.token}
            # Real keys never enter the sandbox, however their variables are named.
            keys = [key for key in (upstream.key, *self._keys().values()) if key]

            async def launching(asked: Task) -> AgentLaunch:
                launch = (await asyncio.to_thread(self._launch, asked, workspace, pointed)).with_packages(brought)
                return replace(
                    launch,
                    argv=access.wrap(launch.argv),
                    env={name: value for name, value in launch.env.items() if not any(key in value for key in keys)},
                    readable=(*launch.readable, *access.readable),
                    network=access.network,
                )

            run = await run_until(self._work(task, workspace, launching), trial.stopped())
            launch = (await asyncio.to_thread(self._launch, task, workspace, pointed)).with_packages(brought)
        try:
            trial.check()
            assert run is not None, "the meter stops an agent only with an error"
            await self._check_started(run, workspace, launch)
            self.evidence.at_work |= bool(trial.log.models)
            if self._did_nothing(run, task) and not self.evidence.at_work and not trial.log.too_large:
                raise self._never_answered(run, trial.log.statuses)
        except TrialError as error:
            error.transcript = trial.transcript() if run is None else with_run(trial.transcript(), run)
            raise
        return run, trial.transcript()

    async def _work(
        self, task: Task, workspace: SandboxedWorkspace, launching: Callable[[Task], Awaitable["AgentLaunch"]]
    ) -> AgentRun:
        """Run the agent. While tests fail and tries are left, run it again with the messages."""
        before = await asyncio.to_thread(read_tree, workspace.folder)
        asked, runs = task, list[AgentRun]()
        while True:
            launch = await launching(asked)
            if runs:  # HOME already has these from the first try
                launch = replace(launch, home={})
            runs.append(await carry_out(asked, launch, self.watch, before=before, tries=self.tries))
            if len(runs) >= self.tries or runs[-1].stop != "exited":
                return joined(runs)
            with task.clock.paused():  # tests do not count as the agent's time
                said = await self._failed_tests(task, workspace)
            if said is None:
                return joined(runs)
            runs[-1] = runs[-1].model_copy(update={"tests_said": said})
            asked = replace(task, prompt=f"{task.prompt}\n{_AGAIN}\n\n{said}\n")

    async def _failed_tests(self, task: Task, workspace: SandboxedWorkspace) -> str | None:
        """Test the files in the workspace. Return the messages, or None if all tests pass."""
        [tests] = [tool for tool in task.tools if tool.name == TESTS_TOOL]
        files, _ = await workspace.collect(self.files[task.case_id].answer)
        said = await tests.call({"files": {**files}})
        return None if said is None else str(said)

    def _launch(self, task: Task, workspace: SandboxedWorkspace, pointed: Mapping[str, str]) -> AgentLaunch:
        """Return the command with placeholders replaced. `pointed` has the meter's values."""
        definition = self.definition
        rule = definition.meter[self.provider] if pointed else MeterRule()
        own = definition.providers.get(self.provider, ProviderRule())
        home_path = str(inside(workspace.sandbox, workspace.place).home)
        texts = {"model": self.model or "", "provider": self.provider, "home": home_path, **pointed}
        texts["instructions"] = task.prompt
        known = self.files.get(task.case_id, TaskFiles())
        values = Values(texts, {"sourceFiles": known.sources, "testFiles": known.tests}, self.environment)
        arguments = values.expand_command(rule.arguments)
        values = replace(values, lists={**values.lists, "meterArguments": arguments})
        env = {**values.expand_variables({**definition.env, **own.env}), **values.expand_variables(rule.env)}
        files = {**definition.home.files, **rule.files}
        home = {name: values.expand(text).encode() for name, text in files.items()}
        if self.use_login:
            home = {**login_files(definition.home.login), **home}
        program, *rest = values.expand_command(definition.command)
        found = program if workspace.sandbox.name == "docker" else program_path(program) or program
        _check_length((found, *rest, *env.values()))
        treated = self._treated_home
        home = {**{name: text.encode() for name, text in (treated | definition.files).items()}, **home}
        watched = (tuple(self._treated_workspace), tuple(treated))
        return AgentLaunch((found, *rest), env, home, program_roots(found), self.network, *watched)

    async def _check_started(self, run: AgentRun, workspace: SandboxedWorkspace, launch: AgentLaunch) -> None:
        """Raise `InfraError` if the program does not exist, whatever the agent itself claims."""
        if run.exit_code != _NOT_FOUND or run.stop != "exited" or run.touched or run.stdout:
            return
        searched = {name: value for name, value in launch.env.items() if name == "PATH"}
        if not await is_found_in(workspace.sandbox, launch.argv[0], searched, launch.readable):
            raise self._never_started(f"could not be started in the sandbox: {run.stderr[-500:].strip()}")

    async def _check_unmetered(self, run: AgentRun, task: Task, workspace: SandboxedWorkspace) -> None:
        """Raise `InfraError` if an agent failed at once without doing anything, and has never worked in this run.

        The requests of an unmetered agent cannot be seen, but one that says that it lacks a login fails everywhere:
        none of its further trials is started. An agent that has worked before and now gives up has failed. Otherwise
        an agent could leave out the cases that it cannot solve.
        """
        if not self._did_nothing(run, task):
            self.evidence.at_work |= run.stop == "exited"
            return
        if self.evidence.at_work:
            return
        problem = (await self._started(task, workspace)).problem
        lacks_something = problem is not None or _CANNOT_WORK.search(run.last_words) is not None
        if not lacks_something and run.seconds > _MAX_START_SECONDS:
            self.evidence.at_work = True
            return
        why = problem or f"it changed nothing, and {_ending(run)}"
        error = self._never_started(f"never started: {why}", at_once=lacks_something)
        error.transcript = with_run(Transcript(output=run.stdout, metadata={"metered": False}), run)
        raise error

    def _did_nothing(self, run: AgentRun, task: Task) -> bool:
        """Return True if the agent failed and changed no answer. Logs do not count as changes."""
        answer = self.files.get(task.case_id, TaskFiles()).answer
        changed = [name for name in run.touched if not answer or matches_pattern(name, answer)]
        return run.stop == "exited" and run.exit_code != 0 and not changed

    def _never_answered(self, run: AgentRun, statuses: Iterable[int]) -> InfraError:
        """Return the error for an agent whose model never answered, so that nothing was measured.

        If the agent worked before and now gives up, it has failed: agents must not skip cases that
        they cannot solve. `statuses` are the HTTP statuses of refused requests.
        """
        refused = ", ".join(map(str, sorted(statuses)))
        why = f"got no answer of its model ({self.provider} answered {refused})" if refused else "never asked its model"
        return self._never_started(f"{why}, and {_ending(run)}")

    def _never_started(self, why: str, *, at_once: bool = False) -> InfraError:
        """Return the error of a trial in which the agent did not start. `at_once`: no other trial can start either."""
        self.evidence.failed_starts += 1
        stops = at_once or self.evidence.failed_starts >= _MAX_FAILED_STARTS
        return InfraError(f"`{self.definition.command[0]}` {why}", permanent=True, stops_subject=stops)


def _ending(run: AgentRun) -> str:
    return f"ended with exit code {run.exit_code}" + (f": {run.last_words}" if run.last_words else "")


def _check_length(words: Iterable[str]) -> None:
    if any(len(os.fsencode(word)) > _MAX_WORD_LENGTH for word in words):
        raise InfraError(
            f"the prompt is longer than the {_MAX_WORD_LENGTH} bytes that a program can be given: shorten the "
            "instructions, the track's AGENTS.md or CLAUDE.md, or --custom-instruction",
            permanent=True,
        )
