"""Turn a suite into a plan: each prompt with each case is a case of the plan."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field, PositiveInt, ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import free_name
from bakeoff._kernel.yaml import gathered
from bakeoff.doors.eval.config import LimitsConfig, PromptCase, PromptSuite, SuitePrompt, printable
from bakeoff.errors import UsageError
from bakeoff.models.prompt_templates import TemplateProblem
from bakeoff.plan import CLUSTER_TAG, PROMPT_TAG, Case, Limits, PassRule, Plan, SubjectSpec
from bakeoff.scorers.entries import scoring_problem

DOOR = "eval"

_MAX_ID_LENGTH = 60
_UNNAMED = re.compile(r"(prompt( \d+)?)?")
_MAX_PROBLEMS = 20


class EvalRequest(FrozenModel):
    """The part of a configuration to run."""

    path: Path | None = Field(default=None, description="None: the configuration in the current folder")
    prompts: tuple[str, ...] = Field(default=(), description="names of prompts; empty: all")
    subjects: tuple[str, ...] = Field(default=(), description="names of subjects; empty: all")
    cases: tuple[str, ...] = Field(default=(), description="names or tags of cases; empty: all")
    rounds: PositiveInt | None = Field(default=None, description="replaces `rounds`")
    judge: str | None = Field(default=None, description="replaces `judge`")


class EvalPlanSettings(FrozenModel):
    """The part of a configuration that a plan keeps besides cases, subjects and scorers."""

    file: str
    limits: LimitsConfig = LimitsConfig()
    prompts: tuple[str, ...] = Field(default=(), description="the names of several prompts, in their order")
    names: dict[str, str] = Field(default={}, description="by the ids of cases: their name without the prompt")
    places: dict[str, tuple[str, int]] = Field(default={}, description="file and line of each case")
    warnings: tuple[str, ...] = ()
    hidden: tuple[str, ...] = Field(default=(), description="files with expected answers, which no command may read")


def settings_of(plan: Plan) -> EvalPlanSettings:
    """Return the settings of a plan: the parts of the configuration that are not in its cases or subjects."""
    try:
        return EvalPlanSettings.model_validate(plan.settings)
    except ValidationError as error:
        raise UsageError(
            f"plan {plan.name!r} was not made by `bakeoff eval`, or by a version that is not supported: start a new run"
        ) from error


def build_plan(suite: PromptSuite, request: EvalRequest | None = None) -> Plan:
    """Return the plan of a suite. One error lists all problems of its cases, each with its place."""
    request = request or EvalRequest()
    _refuse_unknown("--prompt", request.prompts, [prompt.name for prompt in suite.prompts])
    _refuse_unknown("--subject", request.subjects, [spec.name for spec in suite.subjects])
    filled = _FilledCase(suite, request)
    cases = tuple(filled.cases())
    problems = filled.problems
    more = len(problems) - _MAX_PROBLEMS
    gathered(problems[:_MAX_PROBLEMS] + ([f"… and {more:,} more"] if more > 0 else []))
    if not cases:
        raise UsageError(f"no case of {suite.file} has a name or tag {' or '.join(map(repr, request.cases))}")
    commands = any(spec.kind == "command" for spec in suite.subjects)
    settings = EvalPlanSettings(
        file=str(suite.file),
        limits=suite.limits,
        prompts=tuple(prompt.name for prompt in filled.prompts) if filled.several else (),
        names=filled.names if filled.several else {},
        places=filled.places,
        warnings=suite.warnings,
        # Programs such as uv need a pyproject.toml, so that it stays visible.
        hidden=tuple(str(path) for path in suite.sources if commands and path.name != "pyproject.toml"),
    )
    return Plan(
        name=printable(suite.name, 80) or "eval",
        cases=cases,
        subjects=tuple(
            _knowing(spec, cases) for spec in suite.subjects if not request.subjects or spec.name in request.subjects
        ),
        scorers=suite.scorers,
        rounds=request.rounds or suite.rounds,
        threshold=suite.threshold,
        seed=suite.seed,
        door=DOOR,
        settings=settings.model_dump(mode="json", exclude_defaults=True),
    )


def _knowing(spec: SubjectSpec, cases: Sequence[Case]) -> SubjectSpec:
    """Return a subject with the values of the cases, if its code reads them."""
    if "variables" not in spec.options:
        return spec
    return spec.model_copy(
        update={"options": {**spec.options, "variables": {each.id: each.variables for each in cases}}}
    )


def _refuse_unknown(option: str, wanted: Sequence[str], known: Sequence[str]) -> None:
    for name in wanted:
        if name not in known:
            raise UsageError(f"{option} {name!r}: there are {', '.join(known)}")


class _FilledCase:
    """The cases of a plan, made by filling the prompts of a suite; problems are collected."""

    def __init__(self, suite: PromptSuite, request: EvalRequest) -> None:
        self.suite, self.request = suite, request
        self.prompts = [each for each in suite.prompts if not request.prompts or each.name in request.prompts]
        # Without cases, each prompt is a case of its own, and there is nothing to compare prompts on.
        self._alone = not any(case.variables or case.input is not None or case.name for case in suite.cases)
        self.several = len(suite.prompts) > 1 and not self._alone
        self._unscored: list[str] = []
        self._unfilled: dict[str, list[str]] = {}  # problems of prompts, each with the places of its cases
        self.names: dict[str, str] = {}
        self.places: dict[str, tuple[str, int]] = {}
        given = suite.limits.model_dump(include={"attempt_seconds", "score_seconds"}, exclude_none=True)
        self._limits = Limits(**given)

    @property
    def problems(self) -> list[str]:
        """Return each distinct problem once, however many cases have it."""
        of_prompts = [
            f"{problem} (for {'the case' if len(places) == 1 else f'{len(places):,} cases, first'} at {places[0]})"
            for problem, places in self._unfilled.items()
        ]
        return of_prompts + self._unscored

    def cases(self) -> Iterator[Case]:
        taken: set[str] = set()
        wanted = set(self.request.cases)
        for given in self.suite.cases:
            # Cases are named before some are selected: names must not depend on the selection.
            name = free_name(printable(given.name or _described(given), _MAX_ID_LENGTH) or "case", taken)
            taken.add(name)
            if wanted and not wanted & {name, *given.tags.values()}:
                continue
            for prompt in self.prompts:
                case = self._case(given, prompt, name)
                if case is not None:
                    yield case

    def _case(self, given: PromptCase, prompt: SuitePrompt, name: str) -> Case | None:
        values = {**given.variables, **({} if given.input is None else {"input": given.input})}
        try:
            text = prompt.template.fill(values).join(given.around)  # what stands before and after it
            if not text.strip():
                raise TemplateProblem("the prompt is empty")
        except TemplateProblem as problem:
            place = given.where.rsplit(": ", 1)[0] if given.where.count(":") > 1 else given.where
            self._unfilled.setdefault(f"{prompt.where}: {problem}", []).append(place)
            return None
        if self._alone:
            unnamed = _UNNAMED.fullmatch(prompt.name)
            name = free_name(printable(text if unnamed else prompt.name, _MAX_ID_LENGTH), self.names)
        case_id = f"{name} · {prompt.name}" if self.several else name
        self.names[case_id] = name
        file, line, *_ = (*given.where.split(":"), "1")
        self.places[case_id] = (file, int(line) if line.isdecimal() else 1)
        case = Case(
            id=case_id,
            prompt=text,
            expected=given.expected,
            # The same case with several prompts is not new evidence about a subject.
            tags={CLUSTER_TAG: name, **given.tags, PROMPT_TAG: prompt.name} if self.several else given.tags,
            variables=dict(given.variables),
            scorers=given.scorers,
            limits=self._limits,
            pass_rule=None if given.threshold is None else PassRule(threshold=given.threshold, gate="each"),
        )
        specs = self.suite.scorers if given.scorers is None else given.scorers
        if why := scoring_problem(case, [self.suite.built[spec.digest] for spec in specs]):
            self._unscored.append(f"{given.where}: {why}")
        return case


def _described(given: PromptCase) -> str:
    """Return a name for a case that has none: its input, or its values."""
    if given.input is not None:
        return given.input if isinstance(given.input, str) else json.dumps(given.input, ensure_ascii=False)
    return ", ".join(each if isinstance(each, str) else json.dumps(each) for each in given.variables.values())
