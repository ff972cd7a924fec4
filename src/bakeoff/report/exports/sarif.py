"""Write the findings of lint, and the changes of servers, as SARIF 2.1.0, which code hosts and editors show."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from bakeoff._kernel.model import fingerprint
from bakeoff._kernel.text import visible
from bakeoff._version import __version__
from bakeoff.mcp.changes import MEANINGS, ChangeLevel, ToolChange
from bakeoff.mcp.lint import RULES, Level, LintRule
from bakeoff.mcp.lint.checks import LintReport, LintResult
from bakeoff.mcp.snapshot import PlacedSnapshot

_MAX_TEXT_LENGTH = 2_000
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True)
class SarifResult:
    """One finding."""

    rule: str
    level: Level
    text: str
    names: tuple[tuple[str, str], ...]  # kinds and names from the outermost to the innermost; empty names are left out
    place: str
    fingerprint: str
    file: Path | None = None
    line: int = 1


def sarif_log(name: str, rules: Sequence[dict[str, Any]], results: Sequence[SarifResult]) -> dict[str, Any]:
    """Return one run of a tool, with the rules that its results refer to."""
    places = {rule["id"]: at for at, rule in enumerate(rules)}
    driver = {
        "name": name,
        "semanticVersion": ".".join([*__version__.split("+")[0].split("."), "0", "0"][:3]),
        "rules": list(rules),
    }
    written = [
        {
            "ruleId": result.rule,
            "ruleIndex": places[result.rule],
            "level": result.level,
            "message": {"text": _plain(result.text)},
            "locations": [_location(result)],
            "partialFingerprints": {"tool/v1": result.fingerprint},
        }
        for result in results
    ]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": written}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _plain(text: str) -> str:
    """Escape a server's text for a message, where brackets form links and braces placeholders."""
    return visible(text, _MAX_TEXT_LENGTH).replace("](", "] (").replace("{", "{{").replace("}", "}}")


def _location(result: SarifResult) -> dict[str, Any]:
    """Return the place of a result: the tool or parameter, and the line of the file that names its server."""
    kind, name = next((kind, visible(name)) for kind, name in reversed(result.names) if name)
    place = visible(result.place, _MAX_TEXT_LENGTH)
    location: dict[str, Any] = {"logicalLocations": [{"name": name, "fullyQualifiedName": place, "kind": kind}]}
    if result.file is not None:
        # A relative path where possible, because it is looked up in a checkout elsewhere.
        here, file = Path.cwd(), result.file.resolve()
        uri = quote(str(PurePosixPath(file.relative_to(here)))) if file.is_relative_to(here) else file.as_uri()
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}, "region": {"startLine": result.line}}
    return location


def rules_of(*reports: LintReport) -> list[LintRule]:
    """Return the rules that have findings."""
    broken = {finding.rule for report in reports for finding in report.findings}
    return [rule for rule in RULES.values() if rule.id in broken]


def as_sarif(linted: Sequence[LintResult]) -> dict[str, Any]:
    """Return all findings as one run of SARIF 2.1.0."""
    rules = [
        {
            "id": rule.id,
            "name": "".join(word.capitalize() for word in rule.id.split("-")),
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": rule.why},
            "help": {"text": rule.how},
            "defaultConfiguration": {"level": rule.level},
        }
        for rule in rules_of(*(one.report for one in linted))
    ]
    results = [
        SarifResult(
            rule=finding.rule,
            level=finding.level,
            text=f"{finding.place}: {finding.what}. {RULES[finding.rule].why} {RULES[finding.rule].how}",
            names=(("module", finding.server), ("function", finding.tool), ("parameter", finding.parameter)),
            place=finding.place,
            fingerprint=fingerprint(finding.rule, finding.place),
            file=one.file,
            line=one.lines.get(finding.server, 1),
        )
        for one in linted
        for finding in one.report.findings
    ]
    return sarif_log("bakeoff mcp lint", rules, results)


_SARIF_LEVELS: dict[ChangeLevel, Level] = {"breaking": "error", "risky": "warning", "cosmetic": "note"}


def changes_as_sarif(found: Sequence[ToolChange], before: PlacedSnapshot) -> dict[str, Any]:
    """Return changes as SARIF 2.1.0, with the lines of the committed snapshot as their places."""
    rules = {
        change.kind: {
            "id": change.kind,
            "shortDescription": {"text": change.kind.replace("-", " ").capitalize()},
            "help": {"text": MEANINGS[change.level]},
            "defaultConfiguration": {"level": _SARIF_LEVELS[change.level]},
        }
        for change in reversed(found)
    }
    results = [
        SarifResult(
            rule=change.kind,
            level=_SARIF_LEVELS[change.level],
            text=f"{change.level}: {change.where}: {change.what}. {MEANINGS[change.level]}",
            names=(("module", change.server), ("function", change.name), ("parameter", change.place)),
            place=change.where,
            fingerprint=fingerprint(change.kind, change.where, change.what),
            file=before.file,
            line=before.line(*_line_key(change)),
        )
        for change in found
    ]
    return sarif_log("bakeoff mcp diff", list(rules.values()), results)


def _line_key(change: ToolChange) -> tuple[str, ...]:
    """Return the key of the snapshot entry to which a change belongs."""
    section = {
        "tool": "tools",
        "prompt": "prompts",
        "resource": "resourceTemplates" if "template" in change.kind else "resources",
    }.get(change.part)
    return ("servers", change.server, *((section, change.name) if section else ()))
