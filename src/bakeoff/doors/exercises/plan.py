"""From a request to a plan: exercises as cases, agents × models × providers as subjects."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import PurePosixPath

from bakeoff.doors.exercises.agents import known_agents
from bakeoff.doors.exercises.attacks import ATTACKS, in_turn
from bakeoff.doors.exercises.cases import case_of
from bakeoff.doors.exercises.exercises import Exercise
from bakeoff.doors.exercises.request import ExercisesRequest
from bakeoff.doors.exercises.scorer import EXERCISE
from bakeoff.errors import UsageError
from bakeoff.plan import Plan, ScorerSpec, SubjectSpec
from bakeoff.subjects.agent_definition import AgentDefinition
from bakeoff.subjects.command_agent import CLI_AGENT

DOOR = "exercises"
CONTROLS = ("oracle", "nop", "cheat")
"""Names that stand for the subjects that test the exercises, and not for agents."""

TEST_ONLY = "as-it-is"
_LONGEST_NAME = 200  # of a model or provider: result files have to hold it


def build_plan(request: ExercisesRequest, exercises: Sequence[Exercise]) -> Plan:
    """All that `bakeoff agents run` would try."""
    return Plan(
        name="exercises",
        cases=tuple(case_of(exercise, request) for exercise in exercises),
        subjects=tuple(_subjects(request, exercises)),
        scorers=(ScorerSpec(kind=EXERCISE),),
        rounds=request.rounds,
        door=DOOR,
        settings=request.settings(),
    )


def _subjects(request: ExercisesRequest, exercises: Sequence[Exercise]) -> Iterator[SubjectSpec]:
    if request.test_only:
        yield SubjectSpec(kind="nop", name=TEST_ONLY)
        return
    agents = known_agents(request.agent_files)
    if not request.agents:
        raise UsageError(
            "no agent was named: add --agent, for instance --agent oracle --agent nop, which need nothing, or "
            "--agent claude; `bakeoff agents list` shows which are installed"
        )
    taken: set[str] = set()
    for given in dict.fromkeys(name.strip() for name in request.agents):
        for spec in _control(given, exercises) or _axes(given, request, agents):
            named = spec.model_copy(update={"name": _free(spec.name, taken)})
            taken.add(named.name)
            yield named


def _control(name: str, exercises: Sequence[Exercise]) -> list[SubjectSpec]:
    kind, _, attack = name.partition(":")
    if kind == "cheat":
        return _cheats(attack, exercises)
    return [SubjectSpec(kind=name, name=name)] if name in CONTROLS else []


def _cheats(attack: str, exercises: Sequence[Exercise]) -> list[SubjectSpec]:
    """All attacks in turn where there are exercises enough for each; otherwise, and with `all`, one subject each."""
    if not attack and len(exercises) >= len(ATTACKS):
        turns = in_turn({each.name: PurePosixPath(each.solution[0]).suffix for each in exercises})
        return [SubjectSpec(kind="cheat", name="cheat", options={"attacks": {**turns}})]
    names = list(ATTACKS) if attack in ("", "all") else [attack]
    return [SubjectSpec(kind="cheat", name=f"cheat:{name}", options={"attack": name}) for name in names]


def _axes(name: str, request: ExercisesRequest, agents: Mapping[str, AgentDefinition]) -> Iterator[SubjectSpec]:
    """Every model and provider that was asked for; the agent's own where none was."""
    if name not in agents:
        raise UsageError(
            f"--agent {name!r} is not known: there are {', '.join([*CONTROLS, *agents])}; "
            "describe your own in YAML and add --agent-file"
        )
    agent = agents[name]
    for option, values in (("--model", request.models), ("--provider", request.providers)):
        if unfit := [value for value in values if not _is_name(value)]:
            raise UsageError(
                f"{option} {unfit[0]!r:.100} is no name: give one that can be printed and has "
                f"{_LONGEST_NAME} letters at most, or leave {option} out"
            )
    for model in dict.fromkeys(request.models) or (None,):
        for provider in dict.fromkeys(request.providers) or (agent.default_provider,):
            agent.check_provider(provider)
            yield SubjectSpec(
                kind=CLI_AGENT,
                name=_name(name, model, provider if provider != agent.default_provider else None),
                options={
                    "definition": agent.model_dump(mode="json", by_alias=True, exclude_defaults=True),
                    "provider": provider,
                    **({"model": model} if model else {}),
                    **({"use_login": True} if request.use_login else {}),
                    **({"network": True} if request.network else {}),
                },
            )


def _is_name(value: str) -> bool:
    return bool(value.strip()) and value.isprintable() and len(value) <= _LONGEST_NAME


def _name(agent: str, model: str | None, provider: str | None) -> str:
    return " ".join(part for part in (agent, model, f"({provider})" if provider else None) if part)


def _free(name: str, taken: set[str]) -> str:
    numbered = (f"{name} ({number})" for number in count(2))
    return next(name for name in chain([name], numbered) if name not in taken)
