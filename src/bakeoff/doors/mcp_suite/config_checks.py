"""What can be wrong with a configuration that is well-formed: things that do not go together."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff._kernel.yaml_with_lines import Key, PlacedYaml
from bakeoff.doors.mcp_suite.matching import matcher_problems, parameter_problems
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec
from bakeoff.models.names import parse_model_name
from bakeoff.models.providers import provider_name

if TYPE_CHECKING:
    from bakeoff.doors.mcp_suite.config import ExpectedCall, SuiteCase, SuiteConfig

SPELLINGS = ("expectedOutput", "expectedToolUsage")
"""Of one key: ours, and that of older files."""


def shape_problems(placed: PlacedYaml) -> Iterator[str]:
    """What is best told of the file as it is: what it would be read as is something else."""
    assert isinstance(placed.value, dict)
    if "modelSettingsOf" in placed.value:
        yield placed.problem(("modelSettingsOf",), "is not a key that is known here: did you mean 'modelSettings'?")
    servers = placed.value.get("mcpServers")
    if isinstance(servers, dict):
        first = next(iter(servers), "my-server")
        yield placed.problem(("mcpServers",), f"an object: has to be a list: write `- name: {first}`, then its keys")
    cases = placed.value.get("testCases")
    for at, case in enumerate(cases if isinstance(cases, list) else []):
        if isinstance(case, dict) and all(name in case for name in SPELLINGS):
            what = f"{SPELLINGS[1]!r} is another word for {SPELLINGS[0]!r}, which is here too: remove one"
            yield placed.problem(("testCases", at, SPELLINGS[1]), what)


def config_problems(placed: PlacedYaml, config: "SuiteConfig") -> Iterator[str]:
    yield from _twice(placed, "mcpServers", [server.name for server in config.mcpServers])
    yield from _twice(placed, "testCases", [case.name for case in config.testCases])
    yield from _model_problems(placed, config)
    yield from _provider_problems(placed, config)
    for at, server in enumerate(config.mcpServers):
        yield from _server_problems(placed, at, server)
    for at, case in enumerate(config.testCases):
        yield from _case_problems(placed, at, case)
    yield from _judge_problems(placed, config)


def _model_problems(placed: PlacedYaml, config: "SuiteConfig") -> Iterator[str]:
    for at, name in enumerate(config.modelsToTest):
        yield from _name_problems(placed, ("modelsToTest", at), name)
    for name, count in Counter(config.modelsToTest).items():
        if count > 1:
            last = len(config.modelsToTest) - 1 - config.modelsToTest[::-1].index(name)
            yield placed.problem(("modelsToTest", last), f"{name!r} is listed twice: remove one")
    for model in config.modelSettingsOf:
        if model not in config.modelsToTest:
            near = near_names(model, config.modelsToTest)
            yield placed.problem(("modelSettings", model), f"{model!r} is not among modelsToTest{near}")


def _name_problems(placed: PlacedYaml, key: Key, name: str) -> Iterator[str]:
    try:
        parse_model_name(name)
    except UsageError as error:
        yield placed.problem(key, str(error))


def _provider_problems(placed: PlacedYaml, config: "SuiteConfig") -> Iterator[str]:
    for name, provider in config.providers.items():
        key: Key = ("providers", name)
        try:
            provider_name(name)
        except UsageError as error:
            yield placed.problem(key, str(error))
        if provider.target is not None and provider.baseUrl is not None:
            yield placed.problem(key, f"{name!r} has both `target` and `baseUrl`: keep one")
        if provider.options and provider.target is None:
            yield placed.problem((*key, "options"), "are given to a class: name one with `target`, or remove them")


def _server_problems(placed: PlacedYaml, at: int, server: ServerSpec) -> Iterator[str]:
    """A whole command line in `command` would be looked for as one program with blanks in its name."""
    words = (server.command or "").split()
    if len(words) > 1 and not server.args and not Path(server.command or "").exists():
        rest = ", ".join(repr(word) for word in _split(server.command or "")[1:])
        what = f"{server.command!r} is one program: write `command: {words[0]}` and `args: [{rest}]`"
        yield placed.problem(("mcpServers", at, "command"), what)


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _case_problems(placed: PlacedYaml, at: int, case: "SuiteCase") -> Iterator[str]:
    for key, call in expected_calls(placed, at, case):
        for place, problem in parameter_problems(call.parameters):
            yield placed.problem((*key, "parameters", *place), problem)
    for place, problem in matcher_problems(case.expectedResults):
        yield placed.problem(("testCases", at, "expectedResults", *place), problem)
    for field in ("expectedResults", "gradingPrompt"):
        if getattr(case, field) is not None and case.expectedOutput is None:
            yield placed.problem(("testCases", at, field), "has no meaning where no tool should be called: remove it")


def _judge_problems(placed: PlacedYaml, config: "SuiteConfig") -> Iterator[str]:
    graded: list[Key] = [
        ("testCases", at, "gradingPrompt") for at, case in enumerate(config.testCases) if case.gradingPrompt
    ]
    if config.gradingPrompt is not None:
        graded.insert(0, ("gradingPrompt",))
    if config.judge is None:
        if graded:
            yield placed.problem(graded[0], "needs a `judge: provider:model` to grade with")
        return
    yield from _name_problems(placed, ("judge",), config.judge)
    if not config.allowSelfGrading and _same_model(config.judge, config.modelsToTest):
        what = f"{config.judge!r} is under test: name another model, or write `allowSelfGrading: true`"
        yield placed.problem(("judge",), what)


def _same_model(judge: str, models: Iterable[str]) -> bool:
    """However they are spelled; what names no model at all is told elsewhere."""
    try:
        return _canonical(judge) in [_canonical(name) for name in models]
    except UsageError:
        return False


def _canonical(name: str) -> tuple[str, str]:
    parsed = parse_model_name(name)
    return ("google" if parsed.provider == "gemini" else parsed.provider), parsed.model


def _twice(placed: PlacedYaml, what: str, names: list[str] | list[str | None]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for at, name in enumerate(names):
        if name is None:
            continue
        if name in seen:
            yield placed.problem(
                (what, at, "name"), f"{name!r} is used twice, first by {what}[{seen[name]}]: rename one"
            )
        seen.setdefault(name, at)


def expected_calls(placed: PlacedYaml, at: int, case: "SuiteCase") -> Iterator[tuple[Key, "ExpectedCall"]]:
    """Each call of a case, and where it stands."""
    spellings: list[Key] = [("testCases", at, name) for name in SPELLINGS]
    base = next((key for key in spellings if key in placed.lines), spellings[0])
    for place, call in enumerate(case.expectedOutput or ()):
        yield (*base, place) if (*base, place) in placed.lines else base, call


def near_names(name: str, known: Iterable[str], instead: str = "") -> str:
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    if instead:
        return instead
    return f": did you mean {', '.join(map(repr, near))}?" if near else f": there are {', '.join(names[:10]) or 'none'}"
