"""From a request to a plan: suites as cases, models × MCP servers as subjects."""

from collections.abc import Iterator, Sequence
from itertools import chain, count

from pydantic import JsonValue

from bakeoff.doors.components.cases import case_of
from bakeoff.doors.components.request import JOINED, ComponentsRequest
from bakeoff.doors.components.scorer import SUITE
from bakeoff.doors.components.suites import Suite
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec, parse_mcp_option
from bakeoff.models.names import parse_model_name
from bakeoff.plan import Plan, ScorerSpec, SubjectSpec

DOOR = "components"
CONTROLS = ("oracle", "nop", "cheat")
"""Names that stand for the subjects that test the suites, and not for models."""

_USUAL_STEPS = 10
# A small model that finds no end would take minutes for each answer, and repeat itself to the last of its steps.
_LOCAL_STEPS = 2
_LOCAL_TOKENS = 512
_USUAL_ATTACK = "exit-early"


def build_plan(request: ComponentsRequest, suites: Sequence[Suite]) -> Plan:
    """All that `bakeoff run` would try."""
    if not request.models:
        raise UsageError(
            "no model was named: add --model, for instance --model local:smollm2, which runs on this machine, or "
            "--model anthropic/claude-sonnet-4; `bakeoff models list` shows more"
        )
    for flag, given in (("--model", request.models), ("--mcp", request.mcp)):
        for text in given:
            if not text.strip() or not text.isprintable():
                raise UsageError(f"{flag} {text!r}: use printable characters, at least one of them not a space")
    return Plan(
        name="components",
        cases=tuple(case_of(suite, hide_tests=request.hide_tests) for suite in suites),
        subjects=tuple(_subjects(request)),
        scorers=(ScorerSpec(kind=SUITE),),
        rounds=request.rounds,
        seed=request.seed or 0,
        door=DOOR,
        settings=request.settings(),
    )


def servers_of(configuration: str) -> tuple[str, ...]:
    """The servers of one configuration of the MCP axis, as they were typed; none for `none`."""
    servers = tuple(part.strip() for part in configuration.split(JOINED))
    if "none" in servers:
        if len(servers) > 1:
            raise UsageError(f"--mcp {configuration!r}: `none` stands alone; leave it out, or name no server beside it")
        return ()
    return servers


def _subjects(request: ComponentsRequest) -> Iterator[SubjectSpec]:
    taken: set[str] = set()
    for model in dict.fromkeys(name.strip() for name in request.models):
        control = _control(model)
        if control is not None:
            yield control
            continue
        for configuration in dict.fromkeys(request.mcp):
            servers = servers_of(configuration)
            name = _free(_subject_name(model, servers), taken)
            taken.add(name)
            revision = "" if request.test_tool else "without TestComponent"  # which is no option of the subject's
            yield SubjectSpec(kind="agent", name=name, options=_options(request, model, servers), revision=revision)


def _control(model: str) -> SubjectSpec | None:
    kind, _, attack = model.partition(":")
    if kind == "cheat":
        return SubjectSpec(kind=kind, name=model, options={"attack": attack or _USUAL_ATTACK})
    return SubjectSpec(kind=model, name=model) if model in CONTROLS else None


def _options(request: ComponentsRequest, model: str, servers: Sequence[str]) -> dict[str, JsonValue]:
    """Only what differs from the subject's own defaults: what is left out moves no key."""
    local = parse_model_name(model).provider == "local"
    given: dict[str, JsonValue] = {
        "max_steps": request.max_steps or (_LOCAL_STEPS if local else _USUAL_STEPS),
        "mcp": list(servers) or None,
        # Small models answer in prose unless a call is all they can give.
        "tool_choice": "required" if local else None,
        "temperature": request.temperature,
        "max_tokens": request.max_tokens or (_LOCAL_TOKENS if local else None),
        "priced": None if request.pricing else False,
    }
    return {"model": model, **{key: value for key, value in given.items() if value is not None}}


def _subject_name(model: str, servers: Sequence[str]) -> str:
    return JOINED.join([model, *(_spec(server).name for server in servers)])


def _spec(server: str) -> ServerSpec:
    spec = parse_mcp_option(server)
    assert spec is not None, "servers_of leaves `none` out"
    return spec


def _free(name: str, taken: set[str]) -> str:
    numbered = (f"{name} ({number})" for number in count(2))
    return next(name for name in chain([name], numbered) if name not in taken)
