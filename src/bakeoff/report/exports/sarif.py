"""Write findings as SARIF 2.1.0, which code hosts and editors show beside the file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import quote

from bakeoff._kernel.text import visible
from bakeoff._version import __version__

SarifLevel = Literal["error", "warning", "note"]
_LONGEST = 2_000
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True)
class SarifResult:
    """One finding."""

    rule: str
    level: SarifLevel
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
    """Return a text of a server for a message, in which brackets would be a link and braces a placeholder."""
    return visible(text, _LONGEST).replace("](", "] (").replace("{", "{{").replace("}", "}}")


def _location(result: SarifResult) -> dict[str, Any]:
    kind, name = next((kind, visible(name)) for kind, name in reversed(result.names) if name)
    place = visible(result.place, _LONGEST)
    location: dict[str, Any] = {"logicalLocations": [{"name": name, "fullyQualifiedName": place, "kind": kind}]}
    if result.file is not None:
        # A relative path where possible, because it is looked up in a checkout elsewhere.
        here, file = Path.cwd(), result.file.resolve()
        uri = quote(str(PurePosixPath(file.relative_to(here)))) if file.is_relative_to(here) else file.as_uri()
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}, "region": {"startLine": result.line}}
    return location
