"""Turn a suite into a plan: prompts become cases, and models become subjects."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue, PositiveInt, ValidationError

from bakeoff._kernel.imports import importable
from bakeoff._kernel.model import FrozenModel, fingerprint, first_problem, sparse_field
from bakeoff._kernel.yaml import gathered
from bakeoff.doors.mcp.cases import McpCase, McpTurn
from bakeoff.doors.mcp.config import (
    CONFIG_NAME,
    McpSuite,
    ModelSettings,
    ProviderConfig,
    RunSettings,
    SuiteConfig,
    read_suite,
    suite_environment,
)
from bakeoff.doors.mcp.coverage import Coverage
from bakeoff.doors.mcp.servers import PLACEHOLDER, split_secrets
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec, ServerTool
from bakeoff.mcp.prompt import PROMPT_VERSION
from bakeoff.models.providers import parse_model_name
from bakeoff.plan import Case, Limits, PassRule, Plan, ScorerSpec, SubjectSpec
from bakeoff.scorers.entries import ScorerReader, scoring_problem
from bakeoff.scorers.mcp.calls import SCORER, CaseExpectation, ExpectedTurn, Mode

DOOR = "mcp"
KIND = "mcp-"
"""The prefix of every subject's kind; the mode follows it."""

FIRST_SEED = 1
"""The first round's number. Reports count rounds from 1, too, and the number of a round is its seed."""

AGENT_STEPS = 10
REPORT_FOLDER = Path("mcp-report")
_MAX_ID_LENGTH = 80
_SPARE_SECONDS = 30.0  # added to a model's time, for what the model does not cause
_SCORE_SECONDS = 300.0  # for executed tools and a judge


class EvaluationRequest(FrozenModel):
    """Select a configuration, and the part of it to evaluate. Cases that are filtered out do not count as failures."""

    path: Path | None = Field(default=None, description="None: the nearest configuration here or in a folder above")
    prompts: tuple[str, ...] = Field(default=(), description="texts that prompts contain; empty: all cases")
    models: tuple[str, ...] = Field(default=(), description="of modelsToTest; empty: all")
    cases: tuple[str, ...] = Field(default=(), description="names, numbers from 1, or tags; empty: all")
    rounds: PositiveInt | None = Field(default=None, description="replaces testRound")
    jobs: PositiveInt | None = Field(default=None, description="replaces concurrencyLimit")
    min_coverage: float | None = Field(default=None, ge=0, le=1, description="replaces minCoverage")
    report: Path = REPORT_FOLDER
    headers: tuple[str, ...] = Field(default=(), repr=False, description="for servers at a URL, each as `Name: value`")


class McpPlanSettings(RunSettings):
    """The settings of a plan, besides its cases, subjects, scorers and rounds.

    A run can be resumed, rescored and shown from its plan alone. Only secrets are read from the configuration again.
    """

    file: str
    report: str
    servers: tuple[ServerSpec, ...] = Field(description="with placeholders for secrets")
    tools: tuple[ServerTool, ...] = Field(default=(), description="as the servers listed them before the run")
    warnings: tuple[str, ...] = ()
    coverage: Coverage | None = sparse_field(None, "of all cases of the file")
    offered: dict[str, tuple[str, ...]] = sparse_field({}, "the only tools of some cases, of all cases of the file")
    sequences: bool = Field(
        default=False, description="a case of the file needs several calls; only then the prompt explains how to"
    )
    threshold: float = 1.0
    judge: SubjectSpec | None = Field(default=None, description="the model that grades results")
    configuration: dict[str, JsonValue] = sparse_field({}, "the evaluated part of the file, without secrets")

    @property
    def folder(self) -> Path:
        """Return the folder of the configuration. Servers run in it, and modules are imported from it."""
        return Path(self.file).parent

    @cached_property
    def tools_hash(self) -> str:
        """Return the hash of all that the servers say about their tools, which models see."""
        return fingerprint([tool.model_dump(mode="json") for tool in self.tools])

    @property
    def revision(self) -> str:
        """Return a key of everything that may change the answers of all models, besides their options."""
        limited = f"-{fingerprint(self.offered)}" if self.offered else ""
        return f"{PROMPT_VERSION}-{self.tools_hash}-{int(self.sequences)}{limited}"


def settings_of(plan: Plan) -> McpPlanSettings:
    """Return the settings that `build_plan` stored. Raise `UsageError` for a plan of another door or version."""
    try:
        return McpPlanSettings.model_validate(plan.settings)
    except ValidationError as error:
        raise UsageError(
            f"plan {plan.name!r} was not made by `bakeoff mcp`, or by a version that is not supported: "
            f"{first_problem(error)}; start a new run"
        ) from error


def environment_of(plan: Plan, settings: McpPlanSettings) -> dict[str, str]:
    """Return all variables, and the secrets in the configuration, which is read again for them."""
    environment = suite_environment(settings.folder)
    options = [spec.options for spec in (*plan.subjects, settings.judge) if spec is not None]
    if PLACEHOLDER not in settings.model_dump_json(include={"servers"}) + json.dumps(options):
        return environment
    return full_environment(read_suite(Path(settings.file), environment))


def full_environment(suite: McpSuite) -> dict[str, str]:
    """Return the variables of a suite, and the secrets that it spells out."""
    return {**suite.environment, **split_secrets(suite.config, suite.folder)[1]}


def build_plan(suite: McpSuite, request: EvaluationRequest) -> Plan:
    """Build the plan of a suite without its tools, which `with_tools` adds once the servers run."""
    numbered = selected_cases(suite, request)
    models = [name for name in suite.config.modelsToTest if not request.models or name in request.models]
    config, _ = split_secrets(suite.config, suite.folder)
    graded = config.gradingPrompt is not None or any(case.gradingPrompt for _, case in numbered)
    evaluated = {
        "testRound": request.rounds or config.testRound,
        "passThreshold": config.threshold,
        "concurrencyLimit": request.jobs or config.concurrencyLimit,
        "modelsToTest": tuple(models),
        "testCases": tuple(case for _, case in numbered),
    }
    of_file, of_cases, remarks = _scorers(suite, models, numbered)
    settings = McpPlanSettings(
        **{name: evaluated.get(name, getattr(config, name)) for name in RunSettings.model_fields},
        file=str(suite.file),
        report=str(request.report),
        warnings=remarks,
        configuration=_written(config.model_copy(update=evaluated)),
        servers=config.mcpServers,
        # Over all cases of the file: the prompt must not change because fewer cases are selected.
        sequences=any(len(part.expectedOutput or ()) > 1 for case in config.testCases for part in case.parts),
        offered={
            case_id(number, case.name, case.prompt): case.tools
            for number, case in enumerate(config.testCases, 1)
            if case.tools is not None
        },
        threshold=config.threshold,
        judge=_judge(config.judge, config.providers) if config.judge is not None else None,
    )
    longest = max(config.settings_of(model).timeout for model in models)
    seconds = longest * (AGENT_STEPS if config.mode == "agent" else 1)
    calls = _calls_scorer(config, graded=graded)  # comes first: reports read the details of its score
    return Plan(
        name=f"mcp {suite_name(suite.file)}",
        cases=tuple(
            _case(number, case, config, seconds, (calls, *of_cases[number]) if number in of_cases else None)
            for number, case in numbered
        ),
        subjects=tuple(
            SubjectSpec(
                kind=f"{KIND}{config.mode}", name=name, options=_options(name, config), revision=settings.revision
            )
            for name in models
        ),
        scorers=(calls, *of_file),
        rounds=request.rounds or config.testRound,
        threshold=1.0,  # of one round; the suite decides how many rounds must pass
        seed=FIRST_SEED,
        door=DOOR,
        settings=settings.model_dump(mode="json"),
    )


def _scorers(
    suite: McpSuite, models: Sequence[str], numbered: Sequence[tuple[int, McpCase]]
) -> tuple[tuple[ScorerSpec, ...], dict[int, tuple[ScorerSpec, ...]], tuple[str, ...]]:
    """Return the scorers of answers: those of the file, those of single cases, and remarks on them.

    One error lists all problems.
    """
    problems: list[str] = []
    reader = ScorerReader(suite.config.judge, [*models], problems)
    with importable(suite.folder):
        of_file = reader.read(suite.config.scorers, suite.lines, ("scorers",))
        of_cases = {
            number: reader.read(case.scorers, suite.lines, ("testCases", number - 1, "scorers"))
            for number, case in numbered
            if case.scorers is not None
        }
    for number, case in numbered:
        built = [reader.built[spec.digest] for spec in of_cases.get(number, of_file)]
        if why := scoring_problem(Case(id="answer", prompt=case.prompt, expected=case.expected), built):
            problems.append(suite.lines.problem(("testCases", number - 1), why))
        elif case.expected is not None and not built:
            problems.append(suite.lines.problem(("testCases", number - 1, "expected"), "needs `scorers` that compare"))
    gathered(problems)
    return of_file, of_cases, tuple(dict.fromkeys(reader.warnings))


def _written(config: SuiteConfig) -> dict[str, JsonValue]:
    """Return a configuration as a file would write it, without defaults except for the most important keys.

    Variables and headers of servers are left out, because they may be secret.
    """
    important = {name: getattr(config, name) for name in ("testRound", "passThreshold", "concurrencyLimit")}
    secret = {"mcpServers": {"__all__": {"env", "headers"}}}
    return {**important, **config.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=secret)}


def with_tools(
    plan: Plan,
    settings: McpPlanSettings,
    tools: Sequence[ServerTool],
    warnings: Sequence[str],
    coverage: Coverage | None = None,
) -> tuple[Plan, McpPlanSettings]:
    """Add the servers' tools to a plan and its settings."""
    told = tuple(dict.fromkeys((*settings.warnings, *warnings)))
    settings = settings.model_copy(update={"tools": tuple(tools), "warnings": told, "coverage": coverage})
    subjects = tuple(spec.model_copy(update={"revision": settings.revision}) for spec in plan.subjects)
    return plan.model_copy(update={"subjects": subjects, "settings": settings.model_dump(mode="json")}), settings


def suite_name(file: Path) -> str:
    """Name a suite after its file or, if the file has the usual name, after its folder."""
    name = file.resolve().parent.name if file.name == CONFIG_NAME else file.stem
    return "".join(char if char.isprintable() else "_" for char in name).strip() or "suite"


def selected_cases(suite: McpSuite, request: EvaluationRequest) -> list[tuple[int, McpCase]]:
    """Return the selected cases with their numbers, from 1."""
    return [
        (number, case)
        for number, case in enumerate(suite.config.testCases, 1)
        if (not request.cases or not case.names(number).isdisjoint(request.cases))
        and (not request.prompts or any(text.casefold() in case.prompt.casefold() for text in request.prompts))
    ]


def _calls_scorer(config: SuiteConfig, *, graded: bool) -> ScorerSpec:
    """Return the scorer that compares the calls, with the options of `McpCalls`."""
    options: dict[str, JsonValue] = {
        "mode": config.mode,
        "extra_parameters": config.extraParameters,
        "strict_json": config.strictJson,
        "execute": bool(config.executeTools),
        "scope": config.serverScope,
        **({"judge": config.judge} if graded else {}),
    }
    return ScorerSpec(kind=SCORER, options=options)


def _case(
    number: int, case: McpCase, config: SuiteConfig, seconds: float, scorers: tuple[ScorerSpec, ...] | None
) -> Case:
    """Return a case of the plan. Each turn has the same time (`seconds`)."""
    grading = case.gradingPrompt or config.gradingPrompt
    checked = case.expectedResults is not None or grading is not None
    needed = config.mode == "agent" or bool(config.executeTools) or checked
    executes = config.executes(case)
    asked = case.parts if case.turns or case.endState else ()
    expected = CaseExpectation(
        **_expectation(case),
        grading=grading,
        execute=None if executes == needed and not asked else executes,
        graded=(case.gradedText or config.gradedText) if grading is not None else "result",
        turns=tuple(ExpectedTurn(**_expectation(turn), prompt=turn.prompt) for turn in asked),
        end_state=case.endState,
    )
    return Case(
        id=case_id(number, case.name, case.prompt),
        prompt=case.prompt,
        expected=expected.model_dump(mode="json"),
        tags={f"tag {at}": tag for at, tag in enumerate(case.tags, 1)},
        # The value with which scorers of the answer compare, if any. The comparison of calls reads `expected`.
        variables={"expected": case.expected} if case.scorers or config.scorers else {},
        limits=Limits(attempt_seconds=seconds * len(case.parts) + _SPARE_SECONDS, score_seconds=_SCORE_SECONDS),
        pass_rule=PassRule(gate="share", share=config.threshold),
        scorers=scorers,
    )


def _expectation(part: McpTurn) -> dict[str, Any]:
    """Return the expectation of a turn, under the field names of `CaseExpectation`."""
    return {
        "calls": part.expectedOutput,
        "results": part.expectedResults,
        "alternatives": part.alternatives,
        "rules": part.rules,
    }


def case_id(number: int, name: str | None, prompt: str) -> str:
    """Return the name of a case, or its number and prompt. Long names are cut and numbered."""
    text = name if name is not None and len(name) <= _MAX_ID_LENGTH else f"{number}. {name or prompt}"
    shown = "".join(char if char.isprintable() else " " for char in text[: _MAX_ID_LENGTH + 1]).strip()
    return shown if len(shown) <= _MAX_ID_LENGTH else f"{shown[: _MAX_ID_LENGTH - 1]}…"


def _options(model: str, config: SuiteConfig) -> dict[str, JsonValue]:
    """Return all options that may change an answer. Retries and concurrency do not."""
    settings = config.settings_of(model).model_dump(include=set(ModelSettings.model_fields), exclude_none=True)
    constrained = parse_model_name(model).provider == "local" and config.mode == "json"
    return {
        "model": model,
        **settings,
        **({"constrained": True} if constrained else {}),
        **_provider_options(model, config.providers),
    }


def _judge(model: str, providers: Mapping[str, ProviderConfig]) -> SubjectSpec:
    """Return the judge as a subject that always answers in the same way."""
    options: dict[str, JsonValue] = {"model": model, "temperature": 0, "max_tokens": 1024, "timeout": 60}
    return SubjectSpec(kind="model", name="judge", options={**options, **_provider_options(model, providers)})


def _provider_options(model: str, providers: Mapping[str, ProviderConfig]) -> dict[str, JsonValue]:
    """Return the provider that the suite adds for a model, with the option names of `bakeoff.subjects.model`."""
    own = parse_model_name(model).provider
    added = {name: given for name, given in providers.items() if name.strip().lower() == own}
    return (
        {"providers": {name: given.model_dump(exclude_defaults=True) for name, given in added.items()}} if added else {}
    )


def mode_of(plan: Plan, spec: SubjectSpec | None = None) -> Mode:
    """Return the mode in which a subject (by default, the first) is asked, from its kind."""
    mode = (spec or plan.subjects[0]).kind.removeprefix(KIND)
    return "native" if mode == "native" else "agent" if mode == "agent" else "json"
