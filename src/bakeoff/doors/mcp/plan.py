"""Turn a suite into a plan: prompts become cases, and models become subjects."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue, PositiveInt, ValidationError

from bakeoff._kernel.model import FrozenModel, fingerprint, first_problem, sparse_field
from bakeoff.doors.mcp.cases import OF_A_CASE, McpCase, McpTurn
from bakeoff.doors.mcp.config import (
    CONFIG_NAME,
    McpSuite,
    ModelSettings,
    ProviderConfig,
    RunSettings,
    SuiteConfig,
    is_same_model,
    read_suite,
    suite_environment,
)
from bakeoff.doors.mcp.coverage import Coverage
from bakeoff.doors.mcp.servers import PLACEHOLDER, split_secrets
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec, ServerTool
from bakeoff.mcp.prompt import PROMPT_VERSION
from bakeoff.models.providers import parse_model_name
from bakeoff.plan import Case, Limits, PassRule, Plan, ScorerSpec, SubjectSpec, read_options
from bakeoff.scorers.mcp.calls import SCORER, CaseExpectation, ExpectedTurn, Mode, ScorerOptions

DOOR = "mcp"
KIND = "mcp-"
"""Starts the kind of every subject; the mode follows."""

FIRST_SEED = 1
"""Rounds are counted from 1, here and in reports, and the number of a round is its seed."""

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
    """The part of a plan besides its cases, subjects, scorers and rounds.

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

    @property
    def folder(self) -> Path:
        """Return the folder of the configuration, in which its servers run and its modules are imported."""
        return Path(self.file).parent

    @cached_property
    def tools_hash(self) -> str:
        """Return the hash of everything that the servers say about their tools; models see all of it."""
        return fingerprint([tool.model_dump(mode="json") for tool in self.tools])

    @property
    def revision(self) -> str:
        """Return what changes the answers of all models besides their options."""
        limited = f"-{fingerprint(self.offered)}" if self.offered else ""
        return f"{PROMPT_VERSION}-{self.tools_hash}-{int(self.sequences)}{limited}"


def scorer_options(plan: Plan) -> ScorerOptions:
    """Return the options of the scorer of calls; the defaults if a plan of another door has none."""
    return next((read_options(spec, ScorerOptions) for spec in plan.scorers if spec.kind == SCORER), ScorerOptions())


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
    """Return all variables, and the secrets that the configuration spells out, which are read from it again."""
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
    settings = McpPlanSettings(
        **{**config.run_settings(), "concurrencyLimit": request.jobs or config.concurrencyLimit},
        file=str(suite.file),
        report=str(request.report),
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
    scoring: dict[str, JsonValue] = {  # the fields of ScorerOptions
        "mode": config.mode,
        "extra_parameters": config.extraParameters,
        "strict_json": config.strictJson,
        "execute": bool(config.executeTools),
        "scope": config.serverScope,
        **({"judge": config.judge} if graded else {}),
    }
    return Plan(
        name=f"mcp {suite_name(suite.file)}",
        cases=tuple(_case(number, case, config, seconds) for number, case in numbered),
        subjects=tuple(
            SubjectSpec(
                kind=f"{KIND}{config.mode}", name=name, options=_options(name, config), revision=settings.revision
            )
            for name in models
        ),
        scorers=(ScorerSpec(kind=SCORER, options=scoring),),
        rounds=request.rounds or config.testRound,
        threshold=1.0,  # of one round; the suite decides how many rounds must pass
        seed=FIRST_SEED,
        door=DOOR,
        settings=settings.model_dump(mode="json"),
    )


def with_tools(
    plan: Plan,
    settings: McpPlanSettings,
    tools: Sequence[ServerTool],
    warnings: Sequence[str],
    coverage: Coverage | None = None,
) -> tuple[Plan, McpPlanSettings]:
    """Add the tools that the servers listed to a plan and its settings."""
    settings = settings.model_copy(update={"tools": tuple(tools), "warnings": tuple(warnings), "coverage": coverage})
    subjects = tuple(spec.model_copy(update={"revision": settings.revision}) for spec in plan.subjects)
    return plan.model_copy(update={"subjects": subjects, "settings": settings.model_dump(mode="json")}), settings


def suite_name(file: Path) -> str:
    """Return the name of a suite: that of its file, or of its folder if the file has the usual name."""
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


def _case(number: int, case: McpCase, config: SuiteConfig, seconds: float) -> Case:
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
        limits=Limits(attempt_seconds=seconds * len(case.parts) + _SPARE_SECONDS, score_seconds=_SCORE_SECONDS),
        pass_rule=PassRule(gate="share", share=config.threshold),
    )


def _expectation(part: McpTurn) -> dict[str, Any]:
    """Return what a turn expects, by the field names of `CaseExpectation`."""
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
    """Return everything that may change an answer. Retries and concurrency do not."""
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
    """Return the mode in which a subject is asked, from its kind; by default the first, as all have the same."""
    mode = (spec or plan.subjects[0]).kind.removeprefix(KIND)
    return "native" if mode == "native" else "agent" if mode == "agent" else "json"


def config_of(plan: Plan, settings: McpPlanSettings) -> SuiteConfig:
    """Return the evaluated part of the configuration, derived from the plan."""
    scoring = next((spec.options for spec in plan.scorers if spec.kind == SCORER), {})
    models = [spec.name for spec in plan.subjects]
    of_models: dict[str, dict[str, JsonValue]] = {}
    for spec in plan.subjects:
        own = {name: value for name, value in spec.options.items() if name in ModelSettings.model_fields}
        read = ModelSettings.model_validate(own, by_name=True)
        of_models[spec.name] = read.model_dump(exclude_defaults=True, by_alias=True)
    common = of_models[models[0]]
    same = all(each == common for each in of_models.values())
    judge = str(settings.judge.options["model"]) if settings.judge else None
    specs = (*plan.subjects, settings.judge) if settings.judge else plan.subjects
    providers = [spec.options.get("providers", {}) for spec in specs]
    return SuiteConfig.model_validate(
        {
            **settings.run_settings(),
            "testRound": plan.rounds,
            "passThreshold": settings.threshold,
            "modelsToTest": models,
            "testCases": [_suite_case(case, settings) for case in plan.cases],
            "mcpServers": settings.servers,
            "executeTools": scoring.get("execute") or None,
            "mode": mode_of(plan),
            "judge": judge,
            "allowSelfGrading": judge is not None and is_same_model(judge, models),
            "extraParameters": scoring.get("extra_parameters", "reject"),
            "strictJson": scoring.get("strict_json", False),
            "modelSettings": common if same else of_models,
            "providers": {name: given for each in providers if isinstance(each, dict) for name, given in each.items()},
        }
    )


def _suite_case(case: Case, settings: McpPlanSettings) -> McpCase:
    """Return a case of a plan as the configuration had it."""
    expected = CaseExpectation.model_validate(case.expected)
    number = case.id.partition(". ")[0]
    unnamed = number.isdecimal() and case.id == case_id(int(number), None, case.prompt)
    first = expected.turns[0].prompt if expected.turns else None
    several = [_turn(turn, turn.prompt) for turn in expected.turns] if case.prompt != first else []
    return McpCase.model_validate(
        {
            **({"turns": several} if several else _turn(expected, case.prompt)),
            "endState": expected.end_state,
            **expected.rules.model_dump(include=OF_A_CASE),
            "gradingPrompt": expected.grading if expected.grading != settings.gradingPrompt else None,
            "gradedText": expected.graded if expected.grading is not None and expected.graded != "answer" else None,
            "executeTools": None if expected.turns and expected.execute else expected.execute,
            "tools": settings.offered.get(case.id),
            "name": None if unnamed else case.id,
            "tags": tuple(case.tags.values()),
        }
    )


def _turn(expected: CaseExpectation, prompt: str) -> dict[str, Any]:
    """Return what a turn, or a case without turns, expects as a configuration writes it."""
    return {
        "prompt": prompt,
        "expectedOutput": expected.calls,
        "expectedResults": expected.results,
        "alternatives": expected.alternatives,
        **expected.rules.model_dump(exclude=OF_A_CASE),
    }
