"""Write a bill of materials beside each wheel in dist/: what it needs at run time, as CycloneDX 1.6 JSON.

Versions are those of this environment, which `make setup` has installed from constraints.txt, with markers for this
platform. The same wheel and the same pins give the same bytes: it holds neither a time nor a random number.
"""

import hashlib
import json
import sys
import uuid
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def required(requires: list[str], extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the name and the extras of each requirement that applies here."""
    for each in map(Requirement, requires):
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            yield canonicalize_name(each.name), frozenset(each.extras)


def materials(requires: list[str]) -> dict[str, set[str]]:
    """Return all packages that a list of requirements leads to, each with those that it needs itself."""
    waiting, met = list(required(requires, frozenset())), set()
    needs: dict[str, set[str]] = {}
    while waiting:
        name, extras = wanted = waiting.pop()
        if wanted in met:
            continue
        met.add(wanted)
        own = list(required(distribution(name).requires or [], extras))
        needs.setdefault(name, set()).update(each for each, _ in own)
        waiting += own
    return needs


def component(name: str, version: str, licence: str | None, **more: Any) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{version}"
    known = {"licenses": [{"expression": licence}]} if licence else {}
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, **known, **more}


def bill(wheel: Path) -> dict[str, Any]:
    """Return the bill of materials of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (found,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        about = HeaderParser().parsestr(archive.read(found).decode())
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    own = component(
        canonicalize_name(about["Name"]),
        about["Version"],
        about["License-Expression"],
        hashes=[{"alg": "SHA-256", "content": digest}],
    )
    requires = about.get_all("Requires-Dist") or []
    needs = materials(requires)
    parts = {name: _component_of(name) for name in sorted(needs)}
    needed = {own["bom-ref"]: {name for name, _ in required(requires, frozenset())}}
    needed |= {parts[name]["bom-ref"]: needs[name] for name in parts}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{own['purl']}#{digest}").urn,
        "version": 1,
        "metadata": {"component": own},
        "components": list(parts.values()),
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(parts[name]["bom-ref"] for name in names)} for ref, names in needed.items()
        ],
    }


def _component_of(name: str) -> dict[str, Any]:
    found = distribution(name)
    return component(name, found.version, found.metadata["License-Expression"])


def main(folder: str = "dist") -> None:
    for wheel in sorted(Path(folder).glob("*.whl")):
        made = wheel.with_suffix(".cdx.json")
        made.write_text(json.dumps(bill(wheel), indent=2) + "\n", "utf-8")
        print(f"✓ {made}")


if __name__ == "__main__":
    main(*sys.argv[1:])
