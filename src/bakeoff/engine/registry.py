"""Which kinds of subjects and scorers there are, and the building of those that a plan names."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from bakeoff import scorers, subjects
from bakeoff.errors import PlanError, UsageError
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec, describe
from bakeoff.protocols import (
    BoundSubject,
    Checking,
    Impartial,
    Needs,
    NeedsNetwork,
    Resource,
    Scorer,
    SelectiveScorer,
    Subject,
    Tool,
)

if TYPE_CHECKING:
    from bakeoff.subjects.cheat import Attack

SubjectFactory = Callable[[SubjectSpec], Subject | BoundSubject]
ScorerFactory = Callable[[ScorerSpec], Scorer]
Built = TypeVar("Built")
NO_NEEDS = Needs()
_FEW = 20  # cases that are named of those with one and the same fault


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """Everything a plan names, built: nothing in it can be a surprise after the first trial."""

    subjects: Mapping[str, Subject]
    bound: Mapping[str, BoundSubject]  # those that are given the hidden parts of each case
    scorers: Mapping[str, Scorer]
    tools: "Tools"
    rows: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict
    )  # cases that were written in Python, by their ids

    def may_run_commands(self, plan: Plan) -> bool:
        """Whether some trial may want a workspace."""
        files = any(case.files or case.hidden or case.reference or case.collect for case in plan.cases)
        return files or any(needs_of(member).workspace for member in self._members())

    def resources(self) -> Iterable[Resource]:
        for member in self._members():
            yield from needs_of(member).resources

    def secrets(self) -> dict[str, str]:
        """The keys that members use, whatever their variables are called."""
        outbound = [member for member in self._members() if isinstance(member, NeedsNetwork)]
        return {name: value for member in outbound for name, value in member.secrets().items()}

    def _members(self) -> tuple[Subject | BoundSubject | Scorer, ...]:
        return (*self.subjects.values(), *self.bound.values(), *self.scorers.values())


def needs_of(member: Subject | BoundSubject | Scorer) -> Needs:
    needs: Needs = getattr(member, "needs", NO_NEEDS)
    return needs


Tools = Callable[[Case, Mapping[str, Any]], tuple[Tool, ...]]
"""What a door lets every subject call in a case; the resources that are open are there for the tools to use."""


def no_tools(case: Case, resources: Mapping[str, Any]) -> tuple[Tool, ...]:  # noqa: ARG001 - the shape that doors fill
    return ()


@dataclass(frozen=True, slots=True)
class Registry:
    """Factories by kind. FrozenModel: adding a kind gives a new registry."""

    subjects: Mapping[str, SubjectFactory]
    scorers: Mapping[str, ScorerFactory]
    tools: Tools = no_tools

    def with_subject(self, kind: str, factory: SubjectFactory) -> "Registry":
        return replace(self, subjects={**self.subjects, kind: factory})

    def with_scorer(self, kind: str, factory: ScorerFactory) -> "Registry":
        return replace(self, scorers={**self.scorers, kind: factory})

    def with_tools(self, tools: Tools) -> "Registry":
        return replace(self, tools=tools)

    def with_attacks(self, attacks: "Mapping[str, Attack]") -> "Registry":
        """The same with more ways to cheat."""
        from bakeoff.subjects.cheat import ATTACKS

        return self.with_subject("cheat", partial(subjects.Cheat.from_spec, attacks={**ATTACKS, **attacks}))

    def resolve(self, plan: Plan, *, offline: bool = False) -> ResolvedPlan:
        """Build all that the plan names, or raise one error that lists everything wrong with it.

        `offline` builds what answers from recordings alone, and so lacks neither keys nor addresses.
        """
        problems = plan.problems()
        free: dict[str, Subject] = {}
        bound: dict[str, BoundSubject] = {}
        for spec in plan.subjects:
            subject = _build(self.subjects, spec, problems, offline=offline)
            if isinstance(subject, BoundSubject):
                bound[spec.name] = subject
            elif subject is not None:
                free[spec.name] = subject
        judges: dict[str, Scorer] = {}
        for scorer_spec in plan.scorers:
            scorer = _build(self.scorers, scorer_spec, problems, offline=offline)
            name = scorer_spec.name or (scorer.name if scorer is not None else scorer_spec.kind)
            if name in judges:
                problems.append(f"two scorers are called {name!r}: give one of them a `name`")
            elif scorer is not None:
                judges[name] = scorer
        for members in (free, bound, judges):
            for who, member in members.items():
                problems += _few(_misfits(who, member, plan.cases))
        problems += _few(_without_scorer(judges, plan.cases))
        problems += _prejudices(judges, plan.subjects)
        if problems:
            raise PlanError(problems)
        return ResolvedPlan(free, bound, judges, self.tools)


def default_registry() -> Registry:
    """Everything that ships."""
    return Registry(
        subjects={
            "agent": _agent,
            "cheat": subjects.Cheat.from_spec,
            "function": subjects.Function.from_spec,
            "model": _model,
            "nop": subjects.Nop.from_spec,
            "oracle": subjects.Oracle.from_spec,
            "scripted": subjects.Scripted.from_spec,
        },
        scorers={
            "command": scorers.Command.from_spec,
            "contains": scorers.Contains.from_spec,
            "cost": scorers.Cost.from_spec,
            "exact": scorers.Exact.from_spec,
            "factuality": scorers.Factuality.from_spec,
            "function": scorers.Function.from_spec,
            "json": scorers.JsonMatch.from_spec,
            "judge": scorers.Judge.from_spec,
            "latency": scorers.Latency.from_spec,
            "regex": scorers.Regex.from_spec,
            "semantic": scorers.Semantic.from_spec,
            "structured": scorers.StructuredOutput.from_spec,
            "tool_calls": scorers.ToolCalls.from_spec,
        },
    )


def _model(spec: SubjectSpec) -> Subject:
    from bakeoff.subjects.model import ModelSubject  # the SDKs behind it take a second to load

    return ModelSubject.from_spec(spec)


def _agent(spec: SubjectSpec) -> Subject:
    from bakeoff.subjects.model import ModelSubject

    return ModelSubject.agent_from_spec(spec)


def _build(
    factories: Mapping[str, Callable[..., Built]],
    spec: SubjectSpec | ScorerSpec,
    problems: list[str],
    *,
    offline: bool,
) -> Built | None:
    if spec.kind not in factories:
        near = get_close_matches(spec.kind, factories, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(factories))}"
        problems.append(f"{describe(spec)}: unknown kind {spec.kind!r}; {hint}")
        return None
    try:
        built = factories[spec.kind](spec)
    except UsageError as error:
        problems.append(str(error))
        return None
    if isinstance(built, NeedsNetwork):
        if offline:
            return built.offline()
        problems += [f"{describe(spec)}: {lacking}" for lacking in built.lacks()]
    return built


def _misfits(who: str, member: object, cases: Iterable[Case]) -> Iterator[str]:
    if isinstance(member, Checking):
        found = ((case, member.check(case)) for case in cases)
        yield from (f"case {case.id!r}, {who!r}: {problem}" for case, problem in found if problem)


def _prejudices(judges: Mapping[str, Scorer], subjects: Iterable[SubjectSpec]) -> list[str]:
    """Whose answers would be judged by the model that gave them."""
    asked = [(subject.name, subject.options.get("model")) for subject in subjects]
    return [
        f"scorer {who!r}, subject {name!r}: {why}"
        for who, judge in judges.items()
        if isinstance(judge, Impartial)
        for name, model in asked
        if isinstance(model, str) and (why := judge.prejudice(model))
    ]


def _without_scorer(judges: Mapping[str, Scorer], cases: Iterable[Case]) -> Iterator[str]:
    """A scorer that does not say which cases it scores is taken to score all."""
    choosy = [judge for judge in judges.values() if isinstance(judge, SelectiveScorer)]
    if not judges or len(choosy) < len(judges):
        return
    for case in cases:
        if not any(judge.can_score(case) for judge in choosy):
            yield (
                f"case {case.id!r}: no scorer of the plan ({', '.join(judges)}) can score it: give the case what they "
                "compare with (`expected`, or `hidden` files for a command), or add a scorer"
            )


def _few(problems: Iterable[str]) -> list[str]:
    """Ten thousand times the same fault is one fault."""
    found = list(problems)
    more = len(found) - _FEW
    return found if more <= 0 else [*found[:_FEW], f"… and {more} more cases with the same problem"]
