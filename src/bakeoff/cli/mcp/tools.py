"""Implement `bakeoff mcp lint`, `coverage`, `generate`, `init` and `schema`."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from typer import Argument

from bakeoff._kernel.text import count_of, visible
from bakeoff.cli.console import out, print_json, say
from bakeoff.cli.declare import FAILED, PASSED, command, flag, group_of
from bakeoff.cli.flags import MIN_COVERAGE, AsJson
from bakeoff.cli.mcp.servers import (
    ServerFlags,
    direct_servers,
    names_client_file,
    one_suite,
    read_suites_of,
    write_json,
)
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from bakeoff.doors.mcp.coverage import Coverage
    from bakeoff.doors.mcp.generate.drafts import Frame
    from bakeoff.mcp.lint.checks import LintResult
    from bakeoff.mcp.servers import ServerSpec

app = group_of()
FailOn: TypeAlias = Literal["error", "warning", "never"]


@command(app, "lint")
def lint(
    *,
    servers: ServerFlags,
    as_json: AsJson = False,
    sarif: Path | None = flag(None, "Also write SARIF, for code hosts.", metavar="FILE"),
    fail_on: FailOn = flag("error", "The lowest level of a finding that makes the exit code 1."),
    notes: bool = flag(True, "Show notes, the lowest level of findings."),
) -> int:
    """Find what makes tools hard for a model to understand or to use. Needs no model.

    Example: bakeoff mcp lint --command "python server.py" --fail-on warning
    """

    from bakeoff.report.exports.sarif import as_sarif
    from bakeoff.report.render.terminal import print_blocks
    from bakeoff.report.tools import lint_blocks

    linted = asyncio.run(_lint(servers))
    if sarif is not None:
        write_json(sarif, as_sarif(linted))
    if as_json:
        print_json([_as_json(one) for one in linted])
    for one in linted if not as_json else ():
        if len(linted) > 1:
            out().print(f"\n{visible(str(one.file))}", style="bold")
        print_blocks(out(), list(lint_blocks(one.report, notes=notes)))
    return FAILED if any(one.report.fails(fail_on) for one in linted) else PASSED


async def _lint(servers: ServerFlags) -> "list[LintResult]":
    from bakeoff.doors.mcp.servers import servers_of
    from bakeoff.mcp.lint.checks import LintResult, lint_servers

    if direct := direct_servers(servers):
        return [LintResult(await lint_servers(direct))]
    linted = []
    for suite in read_suites_of(servers):
        places = {each.name: ("mcpServers", at) for at, each in enumerate(suite.config.mcpServers)}
        lines = {name: suite.lines.lines.get(place, 1) for name, place in places.items()}
        linted.append(LintResult(await lint_servers(servers_of(suite, servers.only or ())), suite.file, lines))
    return linted


def _as_json(linted: "LintResult") -> dict[str, Any]:
    from bakeoff.report.exports.sarif import rules_of

    report = linted.report
    findings = [{**finding.model_dump(), "level": finding.level} for finding in report.findings]
    return {
        "file": None if linted.file is None else str(linted.file),
        "servers": report.servers,
        "tools": report.tools,
        "findings": findings,
        "rules": [rule.model_dump() for rule in rules_of(report)],
        "tokens": [cost.model_dump() for cost in report.costs],
    }


@command(app, "coverage")
def coverage(*, servers: ServerFlags, as_json: AsJson = False, min_coverage: float | None = MIN_COVERAGE) -> int:
    """Find the tools, parameters and enum values that no case exercises. Needs no model.

    Example: bakeoff mcp coverage --min-coverage 0.8
    """

    from bakeoff.doors.mcp.coverage import coverage_of
    from bakeoff.doors.mcp.results.sections import uncovered_blocks
    from bakeoff.doors.mcp.servers import redacted_tools, servers_of
    from bakeoff.report.render.terminal import print_blocks

    if direct_servers(servers):
        raise UsageError("coverage compares cases with tools: name a configuration instead of a server")
    found: dict[str, Coverage] = {}
    for suite in read_suites_of(servers):
        tools = asyncio.run(redacted_tools(servers_of(suite, servers.only or ())))
        minimum = suite.config.minCoverage if min_coverage is None else min_coverage
        found[str(suite.file)] = coverage_of(suite.config.testCases, tools, minimum)
    if as_json:
        print_json([{"file": file, **each.model_dump(mode="json")} for file, each in found.items()])
    else:
        for file, each in found.items():
            out().print(f"{visible(file)}", style="bold")
            print_blocks(out(), list(uncovered_blocks(each)))
    return PASSED if all(each.passed for each in found.values()) else FAILED


@command(app, "schema")
def print_schema() -> int:
    """Print the JSON Schema of a configuration, for editors.

    Example: bakeoff mcp schema > mcp-testing-framework.schema.json
    """

    from bakeoff.doors.mcp.examples import published_schema

    out().print(published_schema(), end="", soft_wrap=True)
    return PASSED


@command(app, "init")
def init(
    *,
    directory: Annotated[Path, Argument(metavar="DIR", help="The folder to write to.")] = Path(),
    example: str = flag(
        "getting-started",
        "Which one: getting-started, several-servers, custom-provider or directory-suite.",
        metavar="NAME",
    ),
    force: bool = flag(False, "Overwrite existing files."),
) -> int:
    """Write an example that runs as it is.

    Example: bakeoff mcp init my-evals --example several-servers
    """

    from bakeoff.cli.init import print_start
    from bakeoff.doors.mcp.examples import find_example, write_example

    print_start(write_example(example, directory, force=force), directory, find_example(example).then)
    return PASSED


@command(app, "generate")
def generate(
    *,
    servers: ServerFlags,
    model: str | None = flag(None, "The model that words the prompts. Default: templates.", metavar="NAME"),
    per_tool: int = flag(2, "At most this many cases per tool.", min=1, max=10),
    pairs: int = flag(3, "At most this many cases that tell two similar tools apart.", min=0),
    negatives: int = flag(3, "At most this many cases that no tool is for.", min=0),
    output: Path | None = flag(
        None, "The configuration to add the cases to. Default: stdout.", "--output", "-o", metavar="FILE"
    ),
) -> int:
    """Draft test cases from the schemas of the tools.

    Example: bakeoff mcp generate --command "python server.py" -o mcp-testing-framework.yaml
    """

    from bakeoff.doors.mcp.config import suite_environment
    from bakeoff.doors.mcp.generate.drafts import DraftRequest, Frame, added_to, cases_text, draft_cases, whole_config
    from bakeoff.doors.mcp.generate.target import DraftTarget, keys_as_variables
    from bakeoff.doors.mcp.generate.values import Surroundings
    from bakeoff.doors.mcp.model_writing import reworded
    from bakeoff.doors.mcp.servers import redacted_tools

    if output is not None and output.is_file() and not servers.commands and not servers.urls and servers.path is None:
        # The configuration to add to also names the servers.
        servers = ServerFlags(path=output, only=servers.only, headers=servers.headers)
    target = DraftTarget.of(output)
    specs, suite, environment = one_suite(servers)
    tools = asyncio.run(redacted_tools(specs))
    around = {spec.name: Surroundings.of(spec, Path()) for spec in specs}
    drafts, problems = draft_cases(tools, DraftRequest(per_tool, pairs, negatives), taken=target.names, around=around)
    if model is not None:
        drafts, kept = asyncio.run(reworded(drafts, tools, model, environment))
        problems += kept
    drafts = [draft for draft in drafts if draft.prompt not in target.prompts]
    for problem in problems:
        say(f"note: {problem}")
    if not drafts:
        raise UsageError("nothing to add: the configuration has all these cases already")
    frame = _frame_of(servers, specs, model or "local:smollm2", Path() if output is None else output.parent)
    if output is None:
        whole = keys_as_variables(whole_config(drafts, frame), specs, say)[0] if suite is None else None
        out().print(whole or cases_text(drafts), end="", soft_wrap=True)
    elif target.text is not None:
        target.write(added_to(target.text, drafts, output), suite_environment(output.parent), say, like=output)
    else:
        used = frame if suite is None else Frame.of_file(suite.file, output.parent)
        text, variables = keys_as_variables(whole_config(drafts, used), specs, say)
        target.write(text, {**environment, **variables}, say, like=suite.file if suite else None)
    say(f"{count_of(len(drafts), 'case')} for {count_of(len(tools), 'tool')}: review each before you rely on it")
    if any(draft.destructive for draft in drafts):
        say("note: cases of destructive tools have `executeTools: false`, so that nothing is destroyed by accident")
    return PASSED


def _frame_of(servers: ServerFlags, specs: "Sequence[ServerSpec]", model: str, folder: Path) -> "Frame":
    """Return everything in a new configuration except the cases: the model and the servers.

    A client's file may hold secrets, so it is never copied, but named by its path from `folder`.
    """
    from bakeoff.doors.mcp.generate.drafts import Frame
    from bakeoff.doors.mcp.servers import hidden_headers, with_headers

    if servers.path is None or not names_client_file(servers):
        return Frame.given(with_headers(specs, hidden_headers(servers.headers or ())[0]), [model])
    only: dict[str, JsonValue] = {"only": [*servers.only]} if servers.only else {}
    imported = {"import": os.path.relpath(servers.path.resolve(), folder.resolve()), **only}
    return Frame([model], [imported])
