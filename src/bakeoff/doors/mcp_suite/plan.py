"""From a suite to a plan: prompts as cases, models as subjects, rounds as rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from pydantic import Field, JsonValue, PositiveInt, ValidationError

from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff.doors.mcp_suite.calls import Expected
from bakeoff.doors.mcp_suite.config import (
    CONFIG_NAME,
    ProviderConfig,
    Suite,
    SuiteCase,
    SuiteConfig,
    read_suite,
    suite_environment,
)
from bakeoff.doors.mcp_suite.prompt import PROMPT_VERSION
from bakeoff.doors.mcp_suite.servers import confided, has_seals, sealed
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerTool
from bakeoff.models.providers import parse_model_name
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.storage.redaction import secrets_in

REPORT_FOLDER = Path("mcp-report")


class EvaluationRequest(FrozenModel):
    """Which configuration, and which part of it. What is filtered out is no failure: it is not there."""

    path: Path | None = Field(default=None, description="None: the nearest configuration here or above")
    prompts: tuple[str, ...] = Field(default=(), description="texts that prompts hold; all where empty")
    models: tuple[str, ...] = Field(default=(), description="of modelsToTest; all where empty")
    cases: tuple[str, ...] = Field(default=(), description="names, numbers from 1, or tags; all where empty")
    rounds: PositiveInt | None = Field(default=None, description="instead of testRound")
    jobs: PositiveInt | None = Field(default=None, description="instead of concurrencyLimit")
    report: Path = REPORT_FOLDER


class Evaluation(FrozenModel):
    """A suite as it is carried out: filtered, without secrets, and with the tools that its servers offered."""

    config: SuiteConfig
    file: str
    report: str
    tools: tuple[ServerTool, ...] = ()
    warnings: tuple[str, ...] = Field(default=(), description="what its user should know before believing the numbers")
    sequences: bool = Field(
        default=False,
        description="some case of the file takes several calls: only then are models told how to ask for these",
    )

    @property
    def folder(self) -> Path:
        return Path(self.file).parent

    @cached_property
    def tools_hash(self) -> str:
        return fingerprint([tool.model_dump(mode="json") for tool in self.tools])

    @property
    def executes(self) -> bool:
        """Whether tools are really called after a reply; agents call them by themselves."""
        asked = any(case.expectedResults is not None for case in self.config.testCases)
        return asked or self.config.executeTools or self.grades

    @property
    def grades(self) -> bool:
        config = self.config
        return config.gradingPrompt is not None or any(case.gradingPrompt for case in config.testCases)

    def environment(self) -> dict[str, str]:
        """All variables, and what the file tells its servers in confidence, which is read from it each time."""
        found = suite_environment(self.folder)
        if not has_seals(self.config):
            return found
        return {**found, **confided(read_suite(Path(self.file), found).config, found)}

    def as_settings(self) -> dict[str, JsonValue]:
        return self.model_dump(mode="json")


def evaluation_of(plan: Plan) -> Evaluation:
    try:
        return Evaluation.model_validate(plan.settings)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"plan {plan.name!r} was not made by `bakeoff mcp`: {place}: {first['msg']}") from error


DOOR = "mcp"
SCORER = "mcp"
FIRST_SEED = 1
"""Rounds are counted from 1, here and in the reports, and a round's number is its seed."""

AGENT_STEPS = 10
_LONGEST_ID = 80
_SPARE_SECONDS = 30.0  # beyond a model's time, for what is not its doing
_SCORE_SECONDS = 300.0  # for the tools that are executed, and a judge


def build_plan(
    suite: Suite, request: EvaluationRequest, tools: Sequence[ServerTool] = (), warnings: Sequence[str] = ()
) -> Plan:
    """All that would be tried. The tools are known once the servers have been asked."""
    numbered = chosen_cases(suite, request)
    cases = tuple(case for _, case in numbered)
    changes = {
        "testCases": cases,
        "modelsToTest": _chosen_models(suite, request),
        "testRound": request.rounds or suite.config.testRound,
        "concurrencyLimit": request.jobs or suite.config.concurrencyLimit,
    }
    config = sealed(suite.config.model_copy(update=changes), suite.folder)
    evaluation = Evaluation(
        config=config,
        file=str(suite.file),
        report=str(request.report),
        tools=tuple(tools),
        warnings=tuple(warnings),
        # Of all cases: a model must not be told other things because fewer of them are asked.
        sequences=any(len(case.expectedOutput or ()) > 1 for case in suite.config.testCases),
    )
    return Plan(
        name=f"mcp {suite_name(suite.file)}",
        cases=tuple(_case(number, case, config) for number, case in numbered),
        subjects=tuple(_subject(model, evaluation) for model in config.modelsToTest),
        scorers=(ScorerSpec(kind=SCORER, options=_scoring(evaluation)),),
        rounds=config.testRound,
        threshold=1.0,  # of a round; how many rounds have to pass is the suite's own rule
        seed=FIRST_SEED,
        door=DOOR,
        settings=evaluation.as_settings(),
    )


def run_options(config: SuiteConfig, options: RunOptions, environment: Mapping[str, str]) -> RunOptions:
    """The options of a run, with what the suite says about how it is carried out, and its own folder's secrets."""
    retry = config.retryConfig
    return replace(
        options,
        secrets={**secrets_in(environment), **options.secrets},
        jobs=config.concurrencyLimit,
        retries=max(1, retry.maxRetries),  # a server that died is started again, and its rounds get their chance
        backoff_seconds=retry.baseDelay / 1000,
        longest_backoff_seconds=retry.maxDelay / 1000,
    )


def suite_name(file: Path) -> str:
    """What a suite is called: by its file, or by its folder where the file has the usual name."""
    name = file.resolve().parent.name if file.name == CONFIG_NAME else file.stem
    return "".join(char if char.isprintable() else "_" for char in name).strip() or "suite"


def _chosen_models(suite: Suite, request: EvaluationRequest) -> tuple[str, ...]:
    known = suite.config.modelsToTest
    for name in known:
        if not name.isprintable():
            raise UsageError(f"{suite.file}: modelsToTest: {name!r} has characters that cannot be shown: remove them")
    for name in request.models:
        if name not in known:
            raise UsageError(f"--model {name!r} is not among modelsToTest of {suite.file}{_near(name, known)}")
    return tuple(name for name in known if not request.models or name in request.models)


def chosen_cases(suite: Suite, request: EvaluationRequest) -> list[tuple[int, SuiteCase]]:
    """With their numbers, from 1."""
    cases = list(enumerate(suite.config.testCases, 1))
    names = [case.name for _, case in cases if case.name]
    for wanted in request.cases:
        if not any(_is_called(wanted, number, case) for number, case in cases):
            raise UsageError(
                f"--case {wanted!r} is no name, number or tag of a case in {suite.file}{_near(wanted, names)}"
            )
    chosen = [
        (number, case)
        for number, case in cases
        if (not request.cases or any(_is_called(wanted, number, case) for wanted in request.cases))
        and (not request.prompts or any(text.casefold() in case.prompt.casefold() for text in request.prompts))
    ]
    if not chosen:
        raise UsageError(f"no case of {suite.file} is left by --prompt and --case: ask for less")
    return chosen


def _is_called(wanted: str, number: int, case: SuiteCase) -> bool:
    return wanted in (case.name, str(number), *case.tags)


def _near(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known[:10])}" if known else ""


def _case(number: int, case: SuiteCase, config: SuiteConfig) -> Case:
    expected = Expected(
        calls=case.expectedOutput, results=case.expectedResults, grading=case.gradingPrompt or config.gradingPrompt
    )
    return Case(
        id=case_id(number, case),
        prompt=case.prompt,
        expected=expected.model_dump(mode="json"),
        tags={f"tag {at}": tag for at, tag in enumerate(case.tags, 1)},
        limits=Limits(attempt_seconds=_attempt_seconds(config), score_seconds=_SCORE_SECONDS),
    )


def case_id(number: int, case: SuiteCase) -> str:
    """Its name, or else its number and its prompt; long ones are cut, and have the number too."""
    short = case.name is not None and len(case.name) <= _LONGEST_ID
    text = str(case.name) if short else f"{number}. {case.name or case.prompt}"
    shown = "".join(char if char.isprintable() else " " for char in text[: _LONGEST_ID + 1]).strip()
    return shown if len(shown) <= _LONGEST_ID else f"{shown[: _LONGEST_ID - 1]}…"


def _attempt_seconds(config: SuiteConfig) -> float:
    longest = max(config.settings_of(model).timeout for model in config.modelsToTest)
    return longest * (AGENT_STEPS if config.mode == "agent" else 1) + _SPARE_SECONDS


def _subject(model: str, evaluation: Evaluation) -> SubjectSpec:
    config = evaluation.config
    return SubjectSpec(
        kind=f"mcp-{config.mode}",
        name=model,
        options=_options(model, config),
        revision=f"{PROMPT_VERSION}-{evaluation.tools_hash}-{int(evaluation.sequences)}",
    )


def _options(model: str, config: SuiteConfig) -> dict[str, JsonValue]:
    """What may change an answer; how often and how fast one asks does not, and is left to the suite's settings."""
    settings = config.settings_of(model)
    provider = parse_model_name(model).provider
    added = {name: given for name, given in config.providers.items() if name.strip().lower() == provider}
    return {
        "model": model,
        "temperature": settings.temperature,
        "max_tokens": settings.maxTokens,
        "timeout": settings.timeout,
        **({"seed": settings.seed} if settings.seed is not None else {}),
        **({"constrained": True} if provider == "local" and config.mode == "json" else {}),
        **({"providers": {name: provider_options(given) for name, given in added.items()}} if added else {}),
    }


def provider_options(given: ProviderConfig) -> dict[str, JsonValue]:
    """A provider of the suite's, in the words of `bakeoff.subjects.model`."""
    told: dict[str, JsonValue] = {
        "base_url": given.baseUrl,
        "key_variable": given.apiKeyVariable,
        "target": given.target,
        "options": given.options,
    }
    return {name: value for name, value in told.items() if value}


def _scoring(evaluation: Evaluation) -> dict[str, JsonValue]:
    """What changes the scores of answers that are there already."""
    config = evaluation.config
    return {
        "mode": config.mode,
        "extra_parameters": config.extraParameters,
        "strict_json": config.strictJson,
        "execute": config.executeTools,
        "scope": config.serverScope,
        **({"judge": config.judge} if evaluation.grades else {}),
    }
