"""Turn the request of `bakeoff run` into a plan: suites become cases, models × MCP servers become subjects."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field, JsonValue, PositiveInt

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import free_name
from bakeoff.doors.components.scoring import SUITE
from bakeoff.doors.components.suites import ComponentSuite
from bakeoff.doors.treatments import crossed, read_treatments
from bakeoff.errors import UsageError
from bakeoff.grading.cutting import hide_share
from bakeoff.mcp import ServerSpec, parse_mcp_option
from bakeoff.models.providers import parse_model_name
from bakeoff.plan import CONTROLS, Case, Grading, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.toolchains.tracks import starts_processes

JOINED = " + "
"""The separator of the servers in one value of --mcp."""


PICTURES = "pictures"
"""The key in a plan's settings that asks for pictures."""


class ComponentsRequest(FrozenModel):
    """The suites, models and servers to use, and how to ask the models, without run options."""

    suites: Path | None = Field(default=None, description="None: `tests/` if it has suites, or else the bundled ones")
    only: tuple[str, ...] = Field(default=(), description="names of suites; all if empty")
    models: tuple[str, ...] = ()
    mcp: tuple[str, ...] = Field(default=("none",), description="each value is `none`, or servers joined by ` + `")
    treatments: tuple[str, ...] = Field(default=(), description="NAME=PATH: texts for the system prompt")
    test_tool: bool = True
    pricing: bool = True
    hide_tests: bool = False
    pictures: bool = Field(default=False, description="take a picture of each component after grading")
    hidden_tests: float = Field(default=0.0, ge=0, lt=1, description="the share of tests that models do not see")
    hidden_seed: int = Field(default=0, description="decides which tests are hidden")
    rounds: PositiveInt = 1
    max_steps: PositiveInt | None = None  # 10, and fewer for a model on this machine
    temperature: float | None = Field(default=None, ge=0)
    seed: int | None = None
    max_tokens: PositiveInt | None = None

    def settings(self) -> dict[str, JsonValue]:
        """Return the settings of the plan: the parts of the request that are not in its cases or subjects."""
        usual: dict[str, JsonValue] = {
            "test_tool": self.test_tool,
            "pricing": self.pricing,
            "hide_tests": self.hide_tests,
        }
        return {**usual, PICTURES: True} if self.pictures else usual


def command_line(request: ComponentsRequest, *, jobs: int | None = None) -> list[str]:
    """Return the command line for the same request. Options with their default values are left out."""
    words = ["bakeoff", "run"]
    for name, value in request:
        option = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
        if value == getattr(_USUAL, name):
            continue
        if isinstance(value, tuple):
            words += [word for each in value for word in (option, each)]
        elif isinstance(value, bool):
            words.append(option if value else option.replace("--", "--no-", 1))
        else:
            words += [option, str(value)]
    return words if jobs is None else [*words, "--jobs", str(jobs)]


DOOR = "components"

# Scoring waits for a free worker, and perhaps for the reference. A run of the tests has a limit of its own.
_LIMITS = Limits(attempt_seconds=900.0, score_seconds=900.0)
_FENCES = {"vitest": "ts", "pytest": "python"}  # of tests
_STEPS = 10
# A small model that does not stop would take minutes for each answer, and repeat itself until its last step.
_LOCAL_STEPS = 2
_LOCAL_TOKENS = 512
_MORE_TESTS = "Further tests of the same kind, which are not shown, count too."
_USUAL = ComponentsRequest()
_OPTIONS = {"only": "suite", "models": "model", "treatments": "with"}  # where option and field differ
IN_TURN = "in-turn"
"""The attack of a `cheat` without a name, which uses another attack for each suite."""


def build_plan(request: ComponentsRequest, suites: Sequence[ComponentSuite]) -> Plan:
    """Build the plan of `bakeoff run`. A suite is a case; a model with a server configuration is a subject.

    Raises `UsageError` if no model is named, or if a name or a server cannot be read. Providers and keys are checked
    later.
    """
    if not request.models:
        raise UsageError(
            "no model was named: add --model, for instance --model local:smollm2, which runs on this machine, or "
            "--model anthropic/claude-sonnet-4; `bakeoff models list` shows more"
        )
    for flag, given in (("--model", request.models), ("--mcp", request.mcp)):
        for text in given:
            if not text.strip() or not text.isprintable():
                raise UsageError(f"{flag} {text!r}: use printable characters, at least one of them not a space")
    for configuration in request.mcp:
        _servers_of(configuration)  # even if no subject uses them, as with only controls
    return Plan(
        name="components",
        cases=tuple(case_of(suite, request) for suite in suites),
        subjects=tuple(_subjects(request)),
        scorers=(ScorerSpec(kind=SUITE),),
        rounds=request.rounds,
        seed=request.seed or 0,
        door=DOOR,
        settings=request.settings(),
    )


def case_of(suite: ComponentSuite, request: ComponentsRequest = _USUAL) -> Case:
    """Build the case of a suite."""
    seed = f"{request.hidden_seed} {suite.name}"
    shown = hide_share(suite.hidden, [suite.test_file], request.hidden_tests, seed)
    layout = suite.layout
    commanded = {"command": layout.command, "report": layout.report, "canary": layout.canary} if layout.command else {}
    tags = {"runner": layout.runner, "language": suite.language}
    return Case(
        id=suite.name,
        prompt=build_prompt(suite, hide_tests=request.hide_tests, shown=shown.get(suite.test_file)),
        collect=(layout.component,),
        hidden=suite.hidden,
        reference={layout.component: suite.reference},
        grading=Grading(
            runner=layout.runner,
            framework=layout.framework,
            browser=layout.browser,
            solution=(layout.component,),
            tests=(suite.test_file,),
            seconds=layout.seconds,
            validator=suite.validator_file,
            processes=_may_start_processes(suite),
            shown_tests=shown,
            **commanded,
        ),
        picture=suite.picture or {},
        tags={key: value for key, value in tags.items() if value},
        limits=_LIMITS,
    )


def _may_start_processes(suite: ComponentSuite) -> bool:
    if suite.layout.processes is not None or suite.layout.runner != "pytest":
        return bool(suite.layout.processes)
    return starts_processes(suite.test_content, suite.reference, *(suite.support or {}).values())


def build_prompt(suite: ComponentSuite, *, hide_tests: bool, shown: str | None = None) -> str:
    """Return the prompt for a model: the suite's prompt, its tests, and how to submit the answer.

    `shown` replaces the tests if a share of them is hidden.
    """
    parts = [suite.prompt.strip()]
    if not hide_tests:
        language = "tsx" if suite.test_file.endswith("x") else _FENCES.get(suite.layout.runner) or suite.language
        parts.append(f"## Test Suite\n\n{_fenced(shown or suite.test_content, language)}")
        parts += [_MORE_TESTS] if shown else []
    parts.append(
        f"When you have finished, call the `ResultWrite` tool once with the complete content of "
        f"`{suite.component_file}` as `content`. Only what you give to `ResultWrite` counts."
    )
    return "\n\n".join(parts) + "\n"


def _fenced(text: str, language: str) -> str:
    """Put a text into a code fence that is longer than any fence inside."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _subjects(request: ComponentsRequest) -> Iterator[SubjectSpec]:
    taken: set[str] = set()
    treatments = read_treatments(request.treatments, single_files=True) if request.treatments else {}
    fragments = {name: "\n\n".join(map(str.strip, files.values())) for name, files in treatments.items()}
    for model in dict.fromkeys(name.strip() for name in request.models):
        kind, _, attack = model.partition(":")
        if kind == "cheat":
            yield SubjectSpec(kind=kind, name=model, options={"attack": attack or IN_TURN})
        elif model in CONTROLS:
            yield SubjectSpec(kind=model, name=model)
        else:
            yield from crossed(_with_servers(request, model, taken), "system", fragments)


def _with_servers(request: ComponentsRequest, model: str, taken: set[str]) -> Iterator[SubjectSpec]:
    for configuration in dict.fromkeys(request.mcp):
        servers = _servers_of(configuration)
        name = free_name(JOINED.join([model, *(server.name for server in servers.values())]), taken)
        taken.add(name)
        revision = "" if request.test_tool else "without TestComponent"  # not an option of the subject
        yield SubjectSpec(kind="agent", name=name, options=_options(request, model, list(servers)), revision=revision)


def servers_of(request: ComponentsRequest) -> list[tuple[ServerSpec, ...]]:
    """Return the servers of each value of --mcp that names any."""
    return [tuple(found.values()) for value in dict.fromkeys(request.mcp) if (found := _servers_of(value))]


def _servers_of(configuration: str) -> dict[str, ServerSpec]:
    """Return the servers in one value of --mcp, by the text that names each. `none` means no server."""
    typed = dict.fromkeys(part.strip() for part in configuration.split(JOINED))
    if "none" in typed:
        if len(typed) > 1:
            raise UsageError(f"--mcp {configuration!r}: `none` stands alone; leave it out, or name no server beside it")
        return {}
    return {text: spec for text in typed if (spec := parse_mcp_option(text)) is not None}


def _options(request: ComponentsRequest, model: str, servers: list[str]) -> dict[str, JsonValue]:
    """Return only the options that differ from the subject's defaults, because each given option changes the keys."""
    local = parse_model_name(model).provider == "local"
    given: dict[str, JsonValue] = {
        "max_steps": request.max_steps or (_LOCAL_STEPS if local else _STEPS),
        "mcp": [*servers] or None,
        # Small models answer in prose unless they must call a tool.
        "tool_choice": "required" if local else None,
        "temperature": request.temperature,
        "max_tokens": request.max_tokens or (_LOCAL_TOKENS if local else None),
        "priced": None if request.pricing else False,
        "send_seed": False if request.seed is None and not local else None,
    }
    return {"model": model, **{key: value for key, value in given.items() if value is not None}}
