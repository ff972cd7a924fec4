"""Turn a suite into a plan: prompts become cases, and models become subjects."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, JsonValue, PositiveInt, ValidationError, model_validator

from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff.doors.mcp_suite.calls import Expected
from bakeoff.doors.mcp_suite.config import (
    CONFIG_NAME,
    ModelSettings,
    ProviderConfig,
    RetryConfig,
    Suite,
    SuiteCase,
    SuiteConfig,
    is_same_model,
    near_names,
    read_suite,
    suite_environment,
)
from bakeoff.doors.mcp_suite.prompt import PROMPT_VERSION
from bakeoff.doors.mcp_suite.servers import PLACEHOLDER, removed_secrets, without_secrets
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec, ServerTool
from bakeoff.models.providers import parse_model_name
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Limits, PassRule, Plan, ScorerSpec, SubjectSpec
from bakeoff.storage.redaction import secrets_in

DOOR = "mcp"
SCORER = "mcp"
KIND = "mcp-"
"""Starts the kind of every subject; the mode follows."""

FIRST_SEED = 1
"""Rounds are counted from 1, here and in reports, and the number of a round is its seed."""

AGENT_STEPS = 10
REPORT_FOLDER = Path("mcp-report")
_LONGEST_ID = 80
_SPARE_SECONDS = 30.0  # added to a model's time, for what the model does not cause
_SCORE_SECONDS = 300.0  # for executed tools and a judge
_OLD_SETTINGS = ("suiteRule", "concurrencyLimit", "serverScope", "retryConfig", "gradingPrompt")


class EvaluationRequest(FrozenModel):
    """Select a configuration, and the part of it to evaluate. Cases that are filtered out do not count as failures."""

    path: Path | None = Field(default=None, description="None: the nearest configuration here or in a folder above")
    prompts: tuple[str, ...] = Field(default=(), description="texts that prompts contain; empty: all cases")
    models: tuple[str, ...] = Field(default=(), description="of modelsToTest; empty: all")
    cases: tuple[str, ...] = Field(default=(), description="names, numbers from 1, or tags; empty: all")
    rounds: PositiveInt | None = Field(default=None, description="replaces testRound")
    jobs: PositiveInt | None = Field(default=None, description="replaces concurrencyLimit")
    report: Path = REPORT_FOLDER


class PlanSettings(FrozenModel):
    """What a plan keeps besides its cases, subjects, scorers and rounds.

    A run can be resumed, rescored and shown from its plan alone. Only secrets are read from the configuration again.
    """

    file: str
    report: str
    servers: tuple[ServerSpec, ...] = Field(description="with placeholders for secrets")
    tools: tuple[ServerTool, ...] = Field(default=(), description="as the servers listed them before the run")
    warnings: tuple[str, ...] = ()
    sequences: bool = Field(
        default=False, description="a case of the file needs several calls; only then the prompt explains how to"
    )
    threshold: float = 1.0
    suiteRule: Literal["all", "ratio"] = "all"
    concurrencyLimit: int
    serverScope: Literal["run", "trial"] = "run"
    retryConfig: RetryConfig = RetryConfig()
    gradingPrompt: str | None = Field(default=None, description="the criterion for cases without one of their own")
    judge: SubjectSpec | None = Field(default=None, description="the model that grades results")

    @model_validator(mode="before")
    @classmethod
    def _read_old_plan(cls, data: Any) -> Any:
        """Read the settings of older plans, which contain the whole configuration."""
        if not isinstance(data, dict) or not isinstance(config := data.get("config"), dict):
            return data
        threshold = config.get("passThreshold")
        judge = config.get("judge")
        return {
            **{name: value for name, value in data.items() if name != "config"},
            **{name: config[name] for name in _OLD_SETTINGS if name in config},
            "servers": config.get("mcpServers"),
            "threshold": 1.0 if threshold is None else threshold,
            "judge": _judge(judge, _providers(config.get("providers", {}))) if judge else None,
        }

    @property
    def folder(self) -> Path:
        return Path(self.file).parent

    @cached_property
    def tools_hash(self) -> str:
        return fingerprint([tool.model_dump(mode="json") for tool in self.tools])

    @property
    def revision(self) -> str:
        """Return what changes the answers of all models besides their options."""
        return f"{PROMPT_VERSION}-{self.tools_hash}-{int(self.sequences)}"


def settings_of(plan: Plan) -> PlanSettings:
    try:
        return PlanSettings.model_validate(plan.settings)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"plan {plan.name!r} was not made by `bakeoff mcp`, or by a version that is not supported: "
            f"{place}: {first['msg']}; start a new run"
        ) from error


def environment_of(plan: Plan, settings: PlanSettings) -> dict[str, str]:
    """Return all variables, and the secrets that the configuration spells out, which are read from it again."""
    environment = suite_environment(settings.folder)
    options = [spec.options for spec in (*plan.subjects, settings.judge) if spec is not None]
    if PLACEHOLDER not in settings.model_dump_json(include={"servers"}) + json.dumps(options):
        return environment
    return full_environment(read_suite(Path(settings.file), environment))


def full_environment(suite: Suite) -> dict[str, str]:
    """Return the variables of a suite, and the secrets that it spells out."""
    return {**suite.environment, **removed_secrets(suite.config, suite.environment)}


def build_plan(suite: Suite, request: EvaluationRequest) -> Plan:
    """Build the plan of a suite without its tools, which `with_tools` adds once the servers run."""
    numbered = chosen_cases(suite, request)
    models = _chosen_models(suite, request)
    config = without_secrets(suite.config, suite.folder)
    graded = config.gradingPrompt is not None or any(case.gradingPrompt for _, case in numbered)
    settings = PlanSettings(
        file=str(suite.file),
        report=str(request.report),
        servers=config.mcpServers,
        # Over all cases of the file: the prompt must not change because fewer cases are selected.
        sequences=any(len(case.expectedOutput or ()) > 1 for case in config.testCases),
        threshold=config.threshold,
        suiteRule=config.suiteRule,
        concurrencyLimit=request.jobs or config.concurrencyLimit,
        serverScope=config.serverScope,
        retryConfig=config.retryConfig,
        gradingPrompt=config.gradingPrompt,
        judge=_judge(config.judge, config.providers) if config.judge is not None else None,
    )
    longest = max(config.settings_of(model).timeout for model in models)
    limits = Limits(
        attempt_seconds=longest * (AGENT_STEPS if config.mode == "agent" else 1) + _SPARE_SECONDS,
        score_seconds=_SCORE_SECONDS,
    )
    scoring: dict[str, JsonValue] = {  # everything that changes the scores of recorded answers
        "mode": config.mode,
        "extra_parameters": config.extraParameters,
        "strict_json": config.strictJson,
        "execute": config.executeTools,
        "scope": config.serverScope,
        **({"judge": config.judge} if graded else {}),
    }
    return Plan(
        name=f"mcp {suite_name(suite.file)}",
        cases=tuple(_case(number, case, config, limits) for number, case in numbered),
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
    plan: Plan, settings: PlanSettings, tools: Sequence[ServerTool], warnings: Sequence[str]
) -> tuple[Plan, PlanSettings]:
    """Add the tools that the servers listed to a plan and its settings."""
    settings = settings.model_copy(update={"tools": tuple(tools), "warnings": tuple(warnings)})
    subjects = tuple(spec.model_copy(update={"revision": settings.revision}) for spec in plan.subjects)
    return plan.model_copy(update={"subjects": subjects, "settings": settings.model_dump(mode="json")}), settings


def run_options(settings: PlanSettings, options: RunOptions, environment: Mapping[str, str]) -> RunOptions:
    """Return the options of a run with the limits and retries of the suite, and the secrets of its folder."""
    retry = settings.retryConfig
    return replace(
        options,
        secrets={**secrets_in(environment), **options.secrets},
        jobs=settings.concurrencyLimit,
        retries=max(1, retry.maxRetries),  # at least one, for the rounds of a server that died and was restarted
        backoff_seconds=retry.baseDelay / 1000,
        longest_backoff_seconds=retry.maxDelay / 1000,
    )


def suite_name(file: Path) -> str:
    """Return the name of a suite: that of its file, or of its folder if the file has the usual name."""
    name = file.resolve().parent.name if file.name == CONFIG_NAME else file.stem
    return "".join(char if char.isprintable() else "_" for char in name).strip() or "suite"


def _chosen_models(suite: Suite, request: EvaluationRequest) -> tuple[str, ...]:
    known = suite.config.modelsToTest
    for name in known:
        if not name.isprintable():
            raise UsageError(f"{suite.file}: modelsToTest: {name!r} has unprintable characters: remove them")
    for name in request.models:
        if name not in known:
            raise UsageError(f"--model {name!r} is not among modelsToTest of {suite.file}{near_names(name, known)}")
    return tuple(name for name in known if not request.models or name in request.models)


def chosen_cases(suite: Suite, request: EvaluationRequest) -> list[tuple[int, SuiteCase]]:
    """Return the selected cases with their numbers, from 1. Raise `UsageError` if a name matches none."""
    names = [case.name for case in suite.config.testCases if case.name]
    for wanted in request.cases:
        if not has_case(suite, wanted):
            near = near_names(wanted, names) if names else ""
            raise UsageError(f"--case {wanted!r} is not the name, number or tag of a case in {suite.file}{near}")
    chosen = matching_cases(suite, request)
    if not chosen:
        raise UsageError(f"--prompt and --case leave no case of {suite.file}: select more")
    return chosen


def matching_cases(suite: Suite, request: EvaluationRequest) -> list[tuple[int, SuiteCase]]:
    return [
        (number, case)
        for number, case in enumerate(suite.config.testCases, 1)
        if (not request.cases or any(_is_called(wanted, number, case) for wanted in request.cases))
        and (not request.prompts or any(text.casefold() in case.prompt.casefold() for text in request.prompts))
    ]


def has_case(suite: Suite, wanted: str) -> bool:
    """Return True if a case of the suite has this name, number or tag."""
    return any(_is_called(wanted, number, case) for number, case in enumerate(suite.config.testCases, 1))


def _is_called(wanted: str, number: int, case: SuiteCase) -> bool:
    return wanted in (case.name, str(number), *case.tags)


def _case(number: int, case: SuiteCase, config: SuiteConfig, limits: Limits) -> Case:
    expected = Expected(
        calls=case.expectedOutput, results=case.expectedResults, grading=case.gradingPrompt or config.gradingPrompt
    )
    return Case(
        id=case_id(number, case.name, case.prompt),
        prompt=case.prompt,
        expected=expected.model_dump(mode="json"),
        tags={f"tag {at}": tag for at, tag in enumerate(case.tags, 1)},
        limits=limits,
        pass_rule=PassRule(gate="share", share=config.threshold),
    )


def case_id(number: int, name: str | None, prompt: str) -> str:
    """Return the name of a case, or its number and prompt. Long names are cut and numbered."""
    text = name if name is not None and len(name) <= _LONGEST_ID else f"{number}. {name or prompt}"
    shown = "".join(char if char.isprintable() else " " for char in text[: _LONGEST_ID + 1]).strip()
    return shown if len(shown) <= _LONGEST_ID else f"{shown[: _LONGEST_ID - 1]}…"


def _options(model: str, config: SuiteConfig) -> dict[str, JsonValue]:
    """Return everything that may change an answer. Retries and concurrency do not."""
    settings = config.settings_of(model)
    constrained = parse_model_name(model).provider == "local" and config.mode == "json"
    return {
        "model": model,
        "temperature": settings.temperature,
        "max_tokens": settings.maxTokens,
        "timeout": settings.timeout,
        **({"seed": settings.seed} if settings.seed is not None else {}),
        **({"constrained": True} if constrained else {}),
        **_provider_options(model, config.providers),
    }


def _judge(model: str, providers: Mapping[str, ProviderConfig]) -> SubjectSpec:
    options: dict[str, JsonValue] = {"model": model, "temperature": 0, "max_tokens": 1024, "timeout": 60}
    return SubjectSpec(kind="model", name="judge", options={**options, **_provider_options(model, providers)})


def _provider_options(model: str, providers: Mapping[str, ProviderConfig]) -> dict[str, JsonValue]:
    """Return the provider that the suite adds for a model, with the option names of `bakeoff.subjects.model`."""
    added: dict[str, JsonValue] = {}
    for name, given in providers.items():
        if name.strip().lower() == parse_model_name(model).provider:
            options: dict[str, JsonValue] = {
                "base_url": given.baseUrl,
                "key_variable": given.apiKeyVariable,
                "target": given.target,
                "options": given.options,
            }
            added[name] = {option: value for option, value in options.items() if value}
    return {"providers": added} if added else {}


def _providers(options: Any) -> dict[str, ProviderConfig]:
    given = options if isinstance(options, dict) else {}
    return {name: ProviderConfig.model_validate(provider) for name, provider in given.items()}


def mode_of(plan: Plan) -> Literal["json", "native", "agent"]:
    mode = plan.subjects[0].kind.removeprefix(KIND)
    return "native" if mode == "native" else "agent" if mode == "agent" else "json"


def config_of(plan: Plan, settings: PlanSettings) -> SuiteConfig:
    """Return the evaluated part of the configuration, derived from the plan."""
    scoring = next((spec.options for spec in plan.scorers if spec.kind == SCORER), {})
    models = tuple(spec.name for spec in plan.subjects)
    of_models = {spec.name: _settings_from(spec.options) for spec in plan.subjects}
    common = of_models[models[0]]
    same = all(each == common for each in of_models.values())
    specs = (*plan.subjects, *([settings.judge] if settings.judge else []))
    judge = str(settings.judge.options["model"]) if settings.judge else None
    return SuiteConfig.model_validate(
        {
            "testRound": plan.rounds,
            "passThreshold": settings.threshold,
            "suiteRule": settings.suiteRule,
            "concurrencyLimit": settings.concurrencyLimit,
            "modelsToTest": models,
            "testCases": tuple(_suite_case(case, settings) for case in plan.cases),
            "mcpServers": settings.servers,
            "executeTools": scoring.get("execute", False),
            "mode": mode_of(plan),
            "gradingPrompt": settings.gradingPrompt,
            "judge": judge,
            "allowSelfGrading": judge is not None and is_same_model(judge, models),
            "extraParameters": scoring.get("extra_parameters", "reject"),
            "strictJson": scoring.get("strict_json", False),
            "retryConfig": settings.retryConfig,
            "modelSettings": common if same else ModelSettings(),
            "modelSettingsOf": {} if same else of_models,
            "serverScope": settings.serverScope,
            "providers": {
                name: given for spec in specs for name, given in _providers(spec.options.get("providers")).items()
            },
        }
    )


def _settings_from(options: Mapping[str, JsonValue]) -> ModelSettings:
    names = {"temperature": "temperature", "seed": "seed", "maxTokens": "max_tokens", "timeout": "timeout"}
    return ModelSettings.model_validate({key: options[name] for key, name in names.items() if name in options})


def _suite_case(case: Case, settings: PlanSettings) -> SuiteCase:
    expected = Expected.model_validate(case.expected)
    number = case.id.partition(". ")[0]
    unnamed = number.isdecimal() and case.id == case_id(int(number), None, case.prompt)
    return SuiteCase.model_validate(
        {
            "prompt": case.prompt,
            "expectedOutput": expected.calls,
            "expectedResults": expected.results,
            "gradingPrompt": expected.grading if expected.grading != settings.gradingPrompt else None,
            "name": None if unnamed else case.id,
            "tags": tuple(case.tags.values()),
        }
    )
