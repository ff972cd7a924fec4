"""Findings as SARIF 2.1.0, which code hosts and editors show beside the file."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from bakeoff._kernel.model import fingerprint
from bakeoff._version import __version__
from bakeoff.doors.mcp_suite.lint.report import Linted, rules_of
from bakeoff.doors.mcp_suite.lint.rules import RULES, Finding, Rule

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(linted: Sequence[Linted]) -> dict[str, Any]:
    """One run with everything that was found."""
    used = rules_of(*(one.report for one in linted))
    places = {rule.id: at for at, rule in enumerate(used)}
    driver = {
        "name": "bakeoff mcp lint",
        "semanticVersion": _semantic(__version__),
        "rules": [_rule(rule) for rule in used],
    }
    results = [_result(finding, places, one) for one in linted for finding in one.report.findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.id.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.how},
        "defaultConfiguration": {"level": rule.level},
    }


def _result(finding: Finding, places: dict[str, int], linted: Linted) -> dict[str, Any]:
    rule = RULES[finding.rule]
    return {
        "ruleId": finding.rule,
        "ruleIndex": places[finding.rule],
        "level": finding.level,
        "message": {"text": f"{finding.place}: {finding.what}. {rule.why} {rule.how}"},
        "locations": [_location(finding, linted)],
        "partialFingerprints": {"tool/v1": fingerprint(finding.rule, finding.place)},
    }


def _location(finding: Finding, linted: Linted) -> dict[str, Any]:
    names = [("server", finding.server), ("tool", finding.tool), ("parameter", finding.parameter)]
    given = [(kind, name) for kind, name in names if name]
    logical: dict[str, Any] = {"name": given[-1][1], "fullyQualifiedName": finding.place}
    logical["kind"] = {"server": "module", "tool": "function", "parameter": "parameter"}[given[-1][0]]
    location: dict[str, Any] = {"logicalLocations": [logical]}
    if linted.file is not None:
        region = {"startLine": linted.lines.get(finding.server, 1)}
        location["physicalLocation"] = {"artifactLocation": {"uri": _uri(linted.file)}, "region": region}
    return location


def _uri(file: Path) -> str:
    """Relative where it can be: it is looked up in a checkout that stands elsewhere."""
    here = Path.cwd()
    resolved = file.resolve()
    if resolved.is_relative_to(here):
        return quote(str(PurePosixPath(resolved.relative_to(here))))
    return resolved.as_uri()


def _semantic(version: str) -> str:
    return ".".join([*version.split("+")[0].split("."), "0", "0"][:3])
