"""Keys in every place that they come from, repeated in plain and in hex: none is readable in any output."""

import base64
import gzip
import html
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.canaries import find, search, table
from tests.canaries.encodings import ENCODINGS
from tests.canaries.sources import VARIABLES
from tests.canaries.world import Output

from ..warm_bakeoff import WarmBakeoff

pytestmark = pytest.mark.full

SINKS = {
    "run": {"journal.jsonl", "report.html", "run.csv", "junit.xml", "summary.md", "spans", "stderr of run --model"},
    "agents": {"journal.jsonl", "report.html", "agents.csv", "latest.json", "stdout of agents leaderboard"},
    "login": {"journal.jsonl", "report.html", "login.csv", "latest.json"},
    "mcp": {"journal.jsonl", "mcp.html", "mcp.csv", "snapshot.json", "spans", "stdout of mcp list"},
    "header": {"journal.jsonl", "header.csv", "snapshot.json", "stdout of mcp list"},
    "token": {"journal.jsonl", "snapshot.json", "stdout of mcp list"},
    "pytest": {"journal.jsonl", "junit.xml", "evals.json", "evals.html", "log.txt", "stdout of pytest"},
    "errors": {"stderr of a broken reader", "stderr of a crash", "stderr of an import error"},
}
"""Some places that each door must reach: the control is readable there, so that a key would have been found."""


@pytest.mark.parametrize("door", SINKS)
def test_no_planted_key_is_readable_in_any_output(door: str, tmp_path: Path, warm_bakeoff: WarmBakeoff) -> None:
    searched = search(tmp_path, door, warm_bakeoff, long=False)
    assert not searched.findings, table(searched.findings)
    reached = {
        Path(place).name if "stdout" not in place and "stderr" not in place else place for place in searched.reached
    }
    assert SINKS[door] <= reached


WAYS: dict[str, Callable[[str], bytes]] = {
    "as it is": lambda text: text.encode(),
    "in JSON": lambda text: json.dumps({"said": text}).encode(),
    "in JSON in JSON": lambda text: json.dumps([json.dumps([text])]).encode(),
    "in HTML": lambda text: f"<p>{html.escape(text)}</p>".encode(),
    "in a chunk of a page": lambda text: (
        b'<script type="application/gzip" data-chunk="a">%s</script>' % base64.b64encode(gzip.compress(text.encode()))
    ),
    "in gzip": lambda text: gzip.compress(text.encode()),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_key_that_was_not_redacted_is_found(way: str) -> None:
    source = VARIABLES["OPENAI_API_KEY"]
    said = {name: f"the key: {encode(source.key)}, as I said" for name, encode in ENCODINGS.items()}
    findings = find([source], [Output("a door", name, WAYS[way](text)) for name, text in said.items()])
    assert {(one.source, one.place) for one in findings} == {("OPENAI_API_KEY", name) for name in ENCODINGS}


def test_nothing_is_found_where_there_is_no_key() -> None:
    assert not find(VARIABLES.values(), [Output("a door", "a place", b"[redacted OPENAI_API_KEY] and other words")])
