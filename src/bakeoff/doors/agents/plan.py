"""Turn the request of `bakeoff agents run` into a plan.

Exercises become cases, and agents × models × providers become subjects.
"""

import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import Field, JsonValue, PositiveInt

from bakeoff._kernel.git import commit_of
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import free_name, visible
from bakeoff._version import __version__
from bakeoff.doors.agents.agents import CONTROLS, known_agents
from bakeoff.doors.agents.exercises import Exercise
from bakeoff.doors.agents.scoring import EXERCISE
from bakeoff.doors.treatments import crossed, read_treatments
from bakeoff.errors import UsageError
from bakeoff.grading.attacks import SAMPLE, SLOW, attack_names, attacks_in_turn
from bakeoff.grading.cases import graded_case
from bakeoff.grading.cutting import hide_share
from bakeoff.plan import HIDDEN, ORIGIN, Case, Grading, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.subjects.agent_definition import AgentDefinition
from bakeoff.subjects.agent_launch import GRACE_SECONDS
from bakeoff.subjects.command_agent import CLI_AGENT
from bakeoff.toolchains.tracks import TRACKS, Track, own_command, split_command, starts_processes

Seconds = Annotated[float, Field(gt=0, le=604_800.0)]  # a week


class ExercisesRequest(FrozenModel):
    """The exercises, agents and models to use, and how to ask the agents."""

    exercises: Path | None = Field(default=None, description="a track, or one exercise; None: the bundled ones")
    wanted: tuple[str, ...] = Field(
        default=(), description="names, names with commas, or a number; the default selection if empty"
    )
    agents: tuple[str, ...] = ()
    models: tuple[str, ...] = Field(default=(), description="one subject for each; empty: each agent's default")
    providers: tuple[str, ...] = Field(default=(), description="one subject for each; empty: each agent's default")
    agent_files: tuple[Path, ...] = ()
    treatments: tuple[str, ...] = Field(default=(), description="NAME=DIR: files that are laid over the workspace")
    rounds: PositiveInt = 1
    timeout: Seconds = 300.0
    tries: int = Field(default=1, ge=1, le=5, description="tries at an exercise; a later one sees what the tests said")
    test_timeout: Seconds = 60.0
    test_command: str | None = None
    type_check: bool = Field(default=True, description="type errors fail an answer in TypeScript")
    hidden_tests: float = Field(default=0.0, ge=0, lt=1, description="the share of tests that agents do not see")
    hidden_seed: int = Field(default=0, description="decides which tests are hidden")
    unskip: bool = Field(default=True, description="also run the tests that a track skips")
    test_only: bool = False
    custom_instruction: str | None = None
    use_login: bool = False
    network: bool = False
    show_progress: bool = False

    def settings(self) -> dict[str, JsonValue]:
        """Return the settings of the plan: the parts of the request that are not in its cases or subjects."""
        settings: dict[str, JsonValue] = {"show_progress": self.show_progress}
        if self.exercises is None:
            return {**settings, ORIGIN: {"checkout": "bundled", "commit": f"bakeoff {__version__}"}}
        checkout = _checkout(self.exercises.resolve())
        origin = {"checkout": visible(checkout.name), "commit": commit_of(checkout)}
        return {**settings, ORIGIN: {**origin}, HIDDEN: [str(checkout)]}


def _checkout(folder: Path) -> Path:
    """Return the track around a folder, which is hidden because its history has the examples."""
    for part in (folder, folder.parent):  # all exercises, or one of them
        track = part.parent.parent
        if part.parts[-2:] == ("exercises", "practice") and ((track / "config.json").is_file() or track.name in TRACKS):
            return track
    return folder


DOOR = "agents"
TEST_ONLY = "as-it-is"

# Agents print a lot. Scoring waits for a free worker, and perhaps for the example. Tests have a limit of their own.
_LIMITS = Limits(score_seconds=900.0, processes=512, disk_mb=2048, output_kb=16 * 1024)
# Runs of the tests in one scoring: by a command, and in up to two pairs with twins; the same for the example.
_MAX_RUNS = 6
_SOURCE_FOLDERS = ("src", "lib")
_MAX_NAME_LENGTH = 200  # of a model or provider: result files have to hold it
_LISTED = 60  # files in a prompt
_VERSION_SECONDS = 10.0
_BASE = """\
Solve the programming exercise below by editing files in the current folder.

- Write your solution to {solution}. You may add source files beside {it}.
- Do not change tests, configuration or dependencies: they are replaced by the original ones before your work is graded.
- Every test counts, also those that are marked to be skipped.{tests}{processes}
- Nobody will answer questions. Decide yourself, finish the work, and stop."""

_MORE_TESTS = " So do further tests of the same kind, which are not here."
_INSTALLED = " (its packages are installed in `node_modules`, read-only; no network is needed)"
_NO_PROCESSES = "\n- Your solution must not start other processes: it cannot while the tests run."


def build_plan(request: ExercisesRequest, exercises: Sequence[Exercise]) -> Plan:
    """Build the plan of `bakeoff agents run`."""
    tracks = {exercise.track.slug: exercise.track.language for exercise in exercises}
    plan = Plan(
        name="agents",
        cases=tuple(case_of(exercise, request) for exercise in exercises),
        subjects=tuple(_subjects(request, exercises)),
        scorers=(ScorerSpec(kind=EXERCISE),),
        rounds=request.rounds,
        door=DOOR,
        settings=request.settings(),
    )
    return plan.from_origin(track=", ".join(tracks), language=", ".join(dict.fromkeys(tracks.values())))


def case_of(exercise: Exercise, request: ExercisesRequest) -> Case:
    """Build the case of an exercise."""
    track, command = exercise.track, request.test_command or own_command(exercise.track)
    seconds = {
        "attempt_seconds": request.tries * request.timeout + GRACE_SECONDS,
        "score_seconds": _LIMITS.score_seconds + _MAX_RUNS * request.test_timeout,
    }
    hidden, seed = request.hidden_tests, f"{request.hidden_seed} {exercise.name}"
    # Only running the example shows whether the other tests run, and which they are.
    shown = hide_share(exercise.files, exercise.tests, hidden, seed) if exercise.example else {}
    tags = {"track": track.slug, "language": track.fence}
    types = request.type_check and bool(track.type_command) and not command
    return Case(
        id=exercise.name,
        prompt=build_prompt(exercise, request.custom_instruction, command, more_tests=bool(shown), types=types),
        files={**exercise.files, **shown},
        collect=_collected(exercise),
        hidden={
            **(exercise.runner_files if command else {}),
            **{name: exercise.files[name] for name in exercise.tests},
        },
        reference=dict(exercise.example),
        grading=Grading(
            runner="command" if command else track.runner,
            solution=exercise.solution,
            tests=exercise.tests,
            seconds=request.test_timeout,
            track=track.slug,
            command=(command,) if command else (),
            run_skipped=request.unskip,
            processes=_may_start_processes(exercise),
            type_check=types,
            shown_tests=shown,
        ),
        tags={key: value for key, value in tags.items() if value},
        limits=_LIMITS.model_copy(update=seconds),
    )


def _may_start_processes(exercise: Exercise) -> bool:
    tests = [exercise.files[name] for name in exercise.tests]
    return exercise.track.runner == "pytest" and starts_processes(*tests, *exercise.example.values())


def _collected(exercise: Exercise) -> tuple[str, ...]:
    """Return the solution files and the patterns of new sources beside them. Folders that tools fill are left out."""
    beside: dict[str, None] = {}
    for name in exercise.solution:
        path = PurePosixPath(name)
        here = "" if str(path.parent) == "." else f"{path.parent}/"
        beside[f"{here}*{path.suffix}"] = None
        beside.update((f"{here}{folder}/**/*{path.suffix}", None) for folder in _SOURCE_FOLDERS)
    return (*exercise.solution, *beside)


def build_prompt(
    exercise: Exercise,
    custom: str | None = None,
    command: str | None = None,
    *,
    more_tests: bool = False,
    types: bool = False,
) -> str:
    """Return an agent's prompt: the task, the instructions, the environment, the user's additions.

    With `more_tests`, it says that hidden tests count, too; with `types`, that type errors fail.
    """
    parts = [
        _BASE.format(
            solution=_listed(exercise.solution),
            it="it" if len(exercise.solution) == 1 else "them",
            tests=_MORE_TESTS if more_tests else "",
            processes="" if exercise.track.runner == "command" or _may_start_processes(exercise) else _NO_PROCESSES,
        ),
        f"# Exercise: {exercise.name}\n\n{exercise.instructions}",
        _environment(exercise, command, types=types),
        *(f"# From the project's {name}\n\n{text}" for name, text in exercise.notes.items()),
    ]
    if custom and custom.strip():
        parts.append(custom.strip())
    return "\n\n".join(parts) + "\n"


def _environment(exercise: Exercise, command: str | None, *, types: bool) -> str:
    names = [name for name in exercise.files if not name.startswith(".docs/")]
    more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    lines = [
        f"- Language: {exercise.track.language}{_versions(exercise.track)}",
        f"- Files here: {_listed(names[:_LISTED])}{more}",
        f"- Tests: {_listed(exercise.tests)}",
    ]
    installs, test_command = split_command(command or exercise.track.command or "")
    if test_command:
        offline = installs is not None or exercise.track.type_command
        lines.append(f"- Test command: `{test_command}`{_INSTALLED if offline else ''}")
    if types:
        lines.append(f"- Type check, which counts too: `{exercise.track.type_command}`")
    return "\n".join(["# Environment", "", *lines])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


@cache
def _versions(track: Track) -> str:
    """Return the versions of the programs that run the tests, in parentheses; empty for tracks tested by a command."""
    if track.runner == "command":
        return ""
    found = [f"Python {platform.python_version()}"]
    program = shutil.which("node") if track.node else None
    if program is not None:
        with suppress(OSError, subprocess.TimeoutExpired):
            asked = [program, "--version"]
            done = subprocess.run(asked, capture_output=True, text=True, timeout=_VERSION_SECONDS, check=False)
            found.insert(0, f"Node {done.stdout.strip().removeprefix('v')[:20]}")
    return f" ({', '.join(found)})"


def _subjects(request: ExercisesRequest, exercises: Sequence[Exercise]) -> Iterator[SubjectSpec]:
    if request.test_only:
        yield SubjectSpec(kind="nop", name=TEST_ONLY)
        return
    if not request.agents:
        raise UsageError(
            "no agent was named: add --agent, for instance --agent oracle --agent nop, which need nothing, or "
            "--agent claude; `bakeoff agents list` shows which are installed"
        )
    taken: set[str] = set()
    treatments = read_treatments(request.treatments) if request.treatments else {}
    wanted = [*dict.fromkeys(name.strip() for name in request.agents)]
    named = [name for name in wanted if name not in CONTROLS and not name.startswith("cheat:")]
    agents = known_agents(request.agent_files) if named or request.agent_files else {}
    _check_known(named, agents)
    for given in wanted:
        kind, _, attack = given.partition(":")
        controls = _cheats(attack, exercises, request) if kind == "cheat" else []
        if given in CONTROLS and not controls:
            controls = [SubjectSpec(kind=given, name=given)]
        for spec in controls or _axes(given, request, agents):
            taken.add(name := free_name(spec.name, taken))
            unique = spec.model_copy(update={"name": name})
            yield from [unique] if controls else crossed([unique], "treatment", treatments)


def _check_known(wanted: Sequence[str], agents: Mapping[str, AgentDefinition]) -> None:
    """Raise one error that names all unknown agents."""
    known = [*CONTROLS, *agents]
    unknown = [name for name in wanted if name not in agents]
    if not unknown:
        return
    near = dict.fromkeys(other for name in unknown for other in get_close_matches(name.lower(), known, n=3))
    meant = f"did you mean {', '.join(near)}? There are" if near else "there are"
    names = " and ".join(f"--agent {name!r:.100}" for name in unknown[:10])
    raise UsageError(
        f"{names} {'is' if len(unknown) == 1 else 'are'} not known: {meant} {', '.join(known)}; "
        "describe your own in YAML and add --agent-file"
    )


def _cheats(attack: str, exercises: Sequence[Exercise], request: ExercisesRequest) -> list[SubjectSpec]:
    """Return a subject that uses all attacks in turn or, for few exercises, one for each."""
    if not attack and len(exercises) >= len(SAMPLE):
        turns = attacks_in_turn({each.name: graded_case(case_of(each, request)) for each in exercises})
        return [SubjectSpec(kind="cheat", name="cheat", options={"attacks": {**turns}})]
    few_or_all = SAMPLE if not attack else [name for name in attack_names() if name not in SLOW]
    names = few_or_all if attack in ("", "all") else [attack]
    return [SubjectSpec(kind="cheat", name=f"cheat:{name}", options={"attack": name}) for name in names]


def _axes(name: str, request: ExercisesRequest, agents: Mapping[str, AgentDefinition]) -> Iterator[SubjectSpec]:
    """Yield an agent with each model and provider of the request, or with its own if the request names none."""
    agent = agents[name]
    for option, values in (("--model", request.models), ("--provider", request.providers)):
        unfit = [
            value for value in values if not value.strip() or not value.isprintable() or len(value) > _MAX_NAME_LENGTH
        ]
        if unfit:
            raise UsageError(
                f"{option} {unfit[0]!r:.100} is not a name: use printable characters, at most {_MAX_NAME_LENGTH}, "
                f"or leave {option} out"
            )
    for model in dict.fromkeys(request.models) or (None,):
        for provider in dict.fromkeys(request.providers) or (agent.default_provider,):
            agent.check_provider(provider)
            shown = f"({provider})" if provider != agent.default_provider else None
            yield SubjectSpec(
                kind=CLI_AGENT,
                name=" ".join(part for part in (name, model, shown) if part),
                options={
                    "definition": agent.model_dump(mode="json", by_alias=True, exclude_defaults=True),
                    "provider": provider,
                    **({"model": model} if model else {}),
                    **({"use_login": True} if request.use_login else {}),
                    **({"network": True} if request.network else {}),
                    **({"tries": request.tries} if request.tries > 1 else {}),
                },
            )
