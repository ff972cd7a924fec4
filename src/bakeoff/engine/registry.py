"""Register the kinds of subjects and scorers, and build those that a plan uses.

`default_registry()` has all kinds that Bakeoff ships. A door adds its own with the `with_` methods.
`Registry.resolve` checks a whole plan before anything runs, and returns a `ResolvedPlan` with the
objects that the engine calls.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from bakeoff._kernel.imports import command_revision, import_target, revision_of
from bakeoff._kernel.model import first_problem
from bakeoff.errors import PlanError, UsageError
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec, Trial, describe
from bakeoff.protocols import (
    AcceptsReference,
    BoundSubject,
    Checking,
    ModelJudge,
    Needs,
    NeedsNetwork,
    Resource,
    Scorer,
    SelectiveScorer,
    Subject,
    Task,
    Tool,
)
from bakeoff.record import Transcript
from bakeoff.scorers.registry import scorer_kinds

if TYPE_CHECKING:
    from bakeoff.options import RunOptions
    from bakeoff.subjects.controls import Attack

SubjectFactory = Callable[[SubjectSpec], Subject | BoundSubject]
ScorerFactory = Callable[[ScorerSpec], Scorer]
Built = TypeVar("Built")
NO_NEEDS = Needs()
_MAX_NAMED = 20  # cases that are named per problem

Tools = Callable[[Case, Mapping[str, Any]], tuple[Tool, ...]]
"""Returns the tools that a door gives every subject in a case. They may use the open resources, given by key."""


def no_tools(case: Case, resources: Mapping[str, Any]) -> tuple[Tool, ...]:  # noqa: ARG001 - the signature of Tools
    """Return no tools. This is the default of a registry."""
    return ()


def needs_of(member: Subject | BoundSubject | Scorer) -> Needs:
    """Return the declared needs of a subject or scorer, or empty needs."""
    needs: Needs = getattr(member, "needs", NO_NEEDS)
    return needs


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """A checked plan with the subjects and scorers that it names, ready to run.

    Attributes:
        plan: the plan.
        subjects: by name, subjects that see no hidden part of a case.
        bound: by name, subjects that receive the hidden parts of each case.
        scorers: by name.
        tools: makes the tools of a case.
        rows: by case id, cases written in Python, with values that need not be JSON.
        source: the `source` of the registry that built it.
        of_cases: by case id, the scorers of cases that have their own.
        rules: by the id of a scorer's object, its spec if that changes answers or scores.
    """

    plan: Plan
    subjects: Mapping[str, Subject]
    bound: Mapping[str, BoundSubject]
    scorers: Mapping[str, Scorer]
    tools: Tools = no_tools
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: str | None = None
    of_cases: Mapping[str, Mapping[str, Scorer]] = field(default_factory=dict)
    rules: Mapping[int, ScorerSpec] = field(default_factory=dict)

    def scorers_of(self, trial: Trial) -> Mapping[str, Scorer]:
        """Return the scorers of a trial; for `oracle` and `nop`, only those that say something about the case.

        A judge is never asked, and nothing is measured. `oracle` needs scorers that accept the reference: an expected
        answer may be only a part of what others look at. `nop` needs them if a judge is left out.
        """
        case, every = trial.case, self.of_cases.get(trial.case.id, self.scorers)
        if trial.subject.kind not in ("oracle", "nop"):
            return every
        reading = {name: one for name, one in every.items() if getattr(one, "reads_answers", True)}
        fixed = {name: one for name, one in reading.items() if not isinstance(one, ModelJudge)}
        if trial.subject.kind == "nop" and len(fixed) == len(reading):
            return fixed
        known = {name: one for name, one in fixed.items() if isinstance(one, AcceptsReference)}
        return {name: one for name, one in known.items() if one.accepts_reference(case)}

    def may_run_commands(self, subjects: Collection[str] | None = None) -> bool:
        """Return True if a trial may run commands, and so need a workspace.

        `subjects` names the subjects that still have trials; None means all.
        """
        if any(case.files or case.hidden or case.reference or case.collect for case in self.plan.cases):
            return True
        named = {**self.subjects, **self.bound}
        left_out = [] if subjects is None else [id(one) for name, one in named.items() if name not in subjects]
        return any(needs_of(member).workspace for member in self._members() if id(member) not in left_out)

    def resources(self) -> Iterable[Resource]:
        """Yield the needed resources. The same key may occur several times, but is opened once."""
        for member in self._members():
            yield from needs_of(member).resources
        steps = [step for spec in self.rules.values() for step in spec.transform]
        steps += [step for spec in self.plan.subjects for step in spec.transform]
        if any(isinstance(step, dict) for step in steps):
            from bakeoff.scorers.transforms import workers_of  # most plans have none

            yield from workers_of(steps)

    def secrets(self) -> dict[str, str]:
        """Return the API keys of subjects and scorers, by the names of their variables."""
        networked = [member for member in self._members() if isinstance(member, NeedsNetwork)]
        return {name: value for member in networked for name, value in member.secrets().items()}

    def server_code(self) -> dict[str, str]:
        """Return a hash of the local files of each MCP server that subjects and scorers use."""
        hubs = (getattr(member, "hub", None) for member in self._members())
        return {name: digest for hub in hubs for name, digest in getattr(hub, "revisions", {}).items()}

    def refuse_changed_code(self, servers: Mapping[str, str]) -> None:
        """Raise UsageError for functions and scripts other than the plan's, and for servers other than these."""
        specs: tuple[SubjectSpec | ScorerSpec, ...] = (*self.plan.subjects, *self.plan.every_scorer)
        now = ((spec, _revision_now(spec)) for spec in specs if spec.revision)
        changed = [describe(spec) for spec, revision in now if revision not in (None, spec.revision)]
        changed += [name for name, digest in self.server_code().items() if servers.get(name, digest) != digest]
        if changed:
            raise UsageError(
                f"{', '.join(changed)}: changed since the run began, and the rest would be of another version: "
                "start a new run, or go back to that version to finish this one"
            )

    def _members(self) -> tuple[Subject | BoundSubject | Scorer, ...]:
        own = {id(scorer): scorer for scorers in self.of_cases.values() for scorer in scorers.values()}
        return (*self.subjects.values(), *self.bound.values(), *self.scorers.values(), *own.values())


@dataclass(frozen=True, slots=True)
class Registry:
    """Maps kinds to factories. A registry is immutable: each `with_` method returns a new one.

    Args:
        subjects: by kind, functions that build a subject from its spec.
        scorers: by kind, functions that build a scorer from its spec.
        tools: makes the tools that every subject may call in a case.
        source: names a function that builds the registry in another process; None if there is none.
    """

    subjects: Mapping[str, SubjectFactory]
    scorers: Mapping[str, ScorerFactory]
    tools: Tools = no_tools
    source: str | None = None

    def built_by(self, target: str) -> "Registry":
        """Name a function, as `module:function`, that makes this registry from a plan and options.

        Other processes, such as those of a Ray cluster, build it with this function.
        """
        return replace(self, source=target)

    def with_subject(self, kind: str, factory: SubjectFactory) -> "Registry":
        """Add a kind of subject. `factory` builds a subject from its `SubjectSpec`."""
        return replace(self, subjects={**self.subjects, kind: factory}, source=None)

    def with_scorer(self, kind: str, factory: ScorerFactory) -> "Registry":
        """Add a kind of scorer. `factory` builds a scorer from its `ScorerSpec`."""
        return replace(self, scorers={**self.scorers, kind: factory}, source=None)

    def with_tools(self, tools: Tools) -> "Registry":
        """Set the function that makes the tools of a case."""
        return replace(self, tools=tools, source=None)

    def with_attacks(self, attacks: "Mapping[str, Attack]") -> "Registry":
        """Add ways to cheat, by name, for subjects of the kind `cheat`."""
        from bakeoff.subjects.controls import ATTACKS, Cheat

        return self.with_subject("cheat", partial(Cheat.from_spec, attacks={**ATTACKS, **attacks}))

    def resolve(self, plan: Plan, *, offline: bool = False, attempts: bool = True) -> ResolvedPlan:
        """Build everything that the plan names, or raise one `PlanError` that lists all its problems.

        Args:
            plan: the plan to check.
            offline: build subjects and scorers that use only recordings and need no keys.
            attempts: whether subjects will run; if False, unusable subjects are allowed.
        """
        problems = plan.problems()
        built = {
            spec.name: _build(self.subjects, spec, problems if attempts else [], offline=offline and attempts)
            for spec in plan.subjects
        }
        bound = {name: subject for name, subject in built.items() if isinstance(subject, BoundSubject)}
        free = {
            name: _MissingKind(name) if subject is None else subject
            for name, subject in built.items()
            if not isinstance(subject, BoundSubject) and (subject is not None or not attempts)
        }
        scorers = {spec.digest: _build(self.scorers, spec, problems, offline=offline) for spec in plan.every_scorer}

        def named(specs: Iterable[ScorerSpec], where: str = "") -> dict[str, Scorer]:
            found: dict[str, Scorer] = {}
            for spec in specs:
                scorer = scorers[spec.digest]
                name = spec.name or (scorer.name if scorer is not None else spec.kind)
                if name in found:
                    problems.append(f"{where}two scorers are called {name!r}: give one of them a `name`")
                elif scorer is not None:
                    found[name] = scorer
            return found

        own = {case.id: named(case.scorers, f"case {case.id!r}: ") for case in plan.cases if case.scorers is not None}
        judges = named(plan.scorers)
        for members in (free, bound):
            for name, member in members.items():
                problems += _shortened(_case_problems(name, member, plan.cases))
        problems += _scoring_problems(judges, [case for case in plan.cases if case.scorers is None], plan.subjects)
        for case in plan.cases:
            if case.id in own:
                problems += _scoring_problems(own[case.id], [case], plan.subjects)
        if problems:
            raise PlanError(list(dict.fromkeys(problems)))
        rules = {id(scorers[spec.digest]): spec for spec in plan.every_scorer if spec.has_rules}
        return ResolvedPlan(plan, free, bound, judges, self.tools, source=self.source, of_cases=own, rules=rules)


def _revision_now(spec: SubjectSpec | ScorerSpec) -> str | None:
    if spec.kind == "function":
        return revision_of(import_target(str(spec.options["target"]), describe(spec)))
    if spec.kind == "command" and isinstance(argv := spec.options.get("argv"), list):
        return command_revision([str(word) for word in argv], Path(str(spec.options.get("folder", ""))))
    code = spec.code if isinstance(spec, ScorerSpec) else (str(spec.options.get("code", "")),)
    if not any(code):
        return None
    from bakeoff.toolchains.user_code import code_revision  # most plans have none

    return code_revision(code)


@dataclass(frozen=True, slots=True)
class _MissingKind:
    """A placeholder for a subject that cannot be built and is not attempted again."""

    name: str

    async def attempt(self, task: Task) -> Transcript:  # noqa: ARG002 - the signature of a subject
        raise UsageError(f"subject {self.name!r} cannot be built, so that nothing but its recorded attempts is known")


def default_registry() -> Registry:
    """Return a registry of all kinds of subjects and scorers that Bakeoff ships."""
    from bakeoff.subjects.controls import Cheat, Nop, Oracle, ScriptedSubject
    from bakeoff.subjects.function import FunctionSubject

    return Registry(
        subjects={
            "agent": _model,
            "cheat": Cheat.from_spec,
            "function": FunctionSubject.from_spec,
            "model": _model,
            "nop": Nop.from_spec,
            "oracle": Oracle.from_spec,
            "scripted": ScriptedSubject.from_spec,
        },
        scorers={kind: found.build for kind, found in scorer_kinds().items()},
        source=f"{__name__}:registry_of_any_plan",
    )


def registry_of_any_plan(plan: Plan, options: "RunOptions") -> Registry:  # noqa: ARG001 - the signature of a `source`
    """Return the default registry, in the form that other processes call."""
    return default_registry()


def _model(spec: SubjectSpec) -> Subject:
    from bakeoff.subjects.model import ModelSubject  # imports SDKs that take a second to load

    return ModelSubject.from_spec(spec)


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
    except (UsageError, ValidationError) as error:  # the latter from a case that somebody edited in the plan
        problems.append(str(error) if isinstance(error, UsageError) else f"{describe(spec)}: {first_problem(error)}")
        return None
    if isinstance(built, NeedsNetwork):
        if offline:
            return built.offline()
        problems += [f"{describe(spec)}: {lacking}" for lacking in built.lacks()]
    return built


def _case_problems(name: str, member: object, cases: Iterable[Case]) -> Iterator[str]:
    if isinstance(member, Checking):
        found = ((case, member.check(case)) for case in cases)
        yield from (f"case {case.id!r}, {name!r}: {problem}" for case, problem in found if problem)


def _scoring_problems(
    judges: Mapping[str, Scorer], cases: Sequence[Case], subjects: Sequence[SubjectSpec]
) -> Iterator[str]:
    for name, judge in judges.items():
        yield from _shortened(_case_problems(name, judge, cases))
    selective = [judge for judge in judges.values() if isinstance(judge, SelectiveScorer)]
    if judges and len(selective) == len(judges):  # otherwise the others score every case
        yield from _shortened(
            f"case {case.id!r}: no scorer of the plan ({', '.join(judges)}) can score it: give the case what they "
            "compare with (`expected`, or `hidden` files for a command), or add a scorer"
            for case in cases
            if not any(judge.can_score(case) for judge in selective)
        )
    for who, judge in judges.items():
        for subject in subjects if isinstance(judge, ModelJudge) else ():
            model = subject.options.get("model")
            if isinstance(judge, ModelJudge) and isinstance(model, str) and (why := judge.self_judging_problem(model)):
                yield f"scorer {who!r}, subject {subject.name!r}: {why}"


def _shortened(problems: Iterable[str]) -> list[str]:
    """Return the first few of several equal problems, and the number of the rest."""
    found = list(problems)
    more = len(found) - _MAX_NAMED
    return found if more <= 0 else [*found[:_MAX_NAMED], f"… and {more} more cases with the same problem"]
