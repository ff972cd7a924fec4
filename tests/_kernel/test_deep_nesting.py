"""Data that is nested as deeply as anyone likes is an error message in every parser, never a RecursionError."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from bakeoff._kernel.json import parse_json
from bakeoff._kernel.yaml import ConfigError, parse_yaml, read_yaml
from bakeoff.errors import BakeoffError
from bakeoff.mcp.client_files import read_client_file
from bakeoff.mcp.snapshot import read_snapshot
from bakeoff.models.in_process import read_script
from bakeoff.replay.store import Key, Recording, Store
from bakeoff.report.readers import open_source
from bakeoff.report.suites.eval_file import read_eval_file
from bakeoff.storage.journal import read_journal
from bakeoff.storage.labels import read_labels
from bakeoff.storage.run_folder import RunFolder

DEPTHS = [50, 150, 199, 201, 300, 900, 990, 1100, 20_000, 300_000]
SHAPES = {
    "lists": lambda depth: "[" * depth + "]" * depth,
    "objects": lambda depth: '{"a":' * depth + "1" + "}" * depth,
    "open lists": lambda depth: "[" * depth,
    "within": lambda depth: '{"asked": ' + "[" * depth + "]" * depth + "}",
}


def _recording(file: Path) -> None:
    digest = "ab" * 16
    place = file.parent / "ab" / f"{digest}.json"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(file.read_bytes())
    for mode in ("auto", "strict"):
        with suppress(BakeoffError):
            Store(mode, file.parent).find(Key("", {}, digest), Recording)
    with pytest.raises(BakeoffError):
        Store("strict", file.parent).find(Key("", {"case": "c"}, "cd" * 16), Recording)


def _journal(file: Path) -> None:
    journal = file.with_name("journal.jsonl")
    journal.write_bytes(file.read_bytes() + b"\n")
    list(read_journal(journal))


def _plan(file: Path) -> None:
    (file.parent / "plan.json").write_bytes(file.read_bytes())
    RunFolder(file.parent).read_plan()


PARSERS: dict[str, Callable[[Path], object]] = {
    "configuration": read_yaml,
    "recording": _recording,
    "journal": _journal,
    "plan": _plan,
    "labels": read_labels,
    "snapshot": read_snapshot,
    "client file": lambda file: read_client_file(file, {}),
    "eval file": read_eval_file,
    "script": lambda file: read_script(str(file)),
    "result file": lambda file: open_source(file).description,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("parser", PARSERS)
def test_deep_data_is_an_error_message(parser: str, shape: str, tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    for depth in DEPTHS:
        file.write_text(SHAPES[shape](depth))
        with suppress(BakeoffError):
            PARSERS[parser](file)


@pytest.mark.parametrize("depth", DEPTHS)
def test_json_from_elsewhere_is_parsed_up_to_a_depth_that_everything_can_work_with(depth: int) -> None:
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        if depth <= 200:
            assert parse_json(text) == parse_json(text.encode())
        else:
            with pytest.raises(ValueError, match="nested more than 200 levels deep"):
                parse_json(text)


HOSTILE_YAML = {
    "many keys": "".join(f"k{number}: {number}\n" for number in range(300_000)),
    "one key again and again": "k: 1\n" * 300_000,
    "a long list": "a: [" + "1, " * 300_000 + "1]",
    "open lists": "[" * 1_000_000,
    "dashes": "- " * 500_000,
    "questions": "? " * 200_000,
    "aliases of aliases": "a: &a [x]\n"
    + "".join(f"b{n}: &b{n} [{', '.join(['*' + (f'b{n - 1}' if n else 'a')] * 10)}]\n" for n in range(12)),
    "a list in itself": "a: &a [*a, *a]",
}


@pytest.mark.unwatched
@pytest.mark.parametrize("text", HOSTILE_YAML.values(), ids=HOSTILE_YAML)
def test_yaml_that_is_too_much_is_refused_where_it_becomes_too_much(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"more than (200,000 values|100 levels deep)|nested more than 100|here twice"
    ):
        parse_yaml(text, Path("f.yaml"))


@pytest.mark.parametrize("text", ["# comment\n" * 500_000 + "a: 1", "a: " + "x" * 5_000_000, " " * 5_000_000 + "a: 1"])
def test_yaml_that_is_only_long_is_read(text: str) -> None:
    assert isinstance(parse_yaml(text, Path("f.yaml")).value, dict)
