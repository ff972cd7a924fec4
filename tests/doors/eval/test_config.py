"""Errors of a configuration name its file, line and key, and its JSON Schema agrees with what is read."""

import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from pydantic import BaseModel

from bakeoff.doors.eval.config import (
    SCHEMA_NAME,
    CaseEntry,
    EvalConfig,
    LimitsConfig,
    PromptEntry,
    SubjectEntry,
    config_schema,
    first_files,
)
from bakeoff.doors.eval.find import read_suite
from bakeoff.doors.eval.plan import build_plan
from bakeoff.errors import UsageError
from bakeoff.scorers.entries import kinds_for_files

from ...warm_bakeoff import Bakeoff
from .broken import BROKEN, GOOD


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.txt").write_text("a prompt")
    return tmp_path


def test_at_least_forty_kinds_of_broken_files_are_known():
    assert len(BROKEN) >= 40


@pytest.mark.parametrize("name", BROKEN)
def test_the_error_of_a_broken_file_names_file_line_and_key(name: str, here: Path):
    text, told = BROKEN[name]
    (here / "bakeoff.yaml").write_text(text)
    with pytest.raises(UsageError) as error:
        build_plan(read_suite(None))
    assert f"bakeoff.yaml:{told}" in str(error.value)


def test_all_problems_of_a_file_are_told_at_once(here: Path, bakeoff: Bakeoff):
    (here / "bakeoff.yaml").write_text(GOOD.replace("exact", "exakt").replace("[oracle]", "[gpt-5]"))
    done = bakeoff("eval", "--check")
    assert done.returncode == 2
    assert "bakeoff.yaml:1: subjects[0]: 'gpt-5' is not a model name" in done.stderr
    assert "bakeoff.yaml:5: scorers[0]: there is no scorer 'exakt'" in done.stderr
    assert "Traceback" not in done.stderr


def test_problems_of_keys_and_of_what_they_name_are_told_together_in_the_order_of_lines(here: Path, bakeoff: Bakeoff):
    (here / "rows.csv").write_text("input,expected,threshold\na,b,high\n")
    (here / "bakeoff.yaml").write_text(
        "threshold: 3\nsubjects: [{command: [no-such-program-at-all]}]\nprompts: file:nowhere.txt\n"
        "cases: [file:missing.csv, file:rows.csv]\nscorers: [exakt, contains]\ntreshold: 1\nrounds: many\n"
    )
    done = bakeoff("eval", "--check")
    assert done.returncode == 2
    assert [line.removeprefix("error: ").split(": ")[:2] for line in done.stderr.splitlines()] == [
        ["bakeoff.yaml:1", "threshold"],
        ["bakeoff.yaml:2", "subjects[0].command"],
        ["bakeoff.yaml:3", "prompts"],
        ["bakeoff.yaml:4", "cases[0]"],
        ["bakeoff.yaml:5", "scorers[0]"],
        ["bakeoff.yaml:6", "treshold"],
        ["bakeoff.yaml:7", "rounds"],
        ["rows.csv:2", "threshold"],
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        GOOD.replace("[oracle]", "[{model: 5}]").replace("[exact]", "[{judge: Is it polite?}]"),
        GOOD.replace("oracle", "local:smollm2").replace("[exact]", "[{judge: Is it polite?}]") + "judge: 5\n",
        GOOD.replace("  - {input: France, expected: Paris}", "  - {inptu: France}"),
        GOOD.replace('"{{ input }}"', "5"),
        GOOD.replace("[exact]", "[5]"),
    ],
    ids=["subjects", "judge", "cases", "prompts", "scorers"],
)
def test_a_key_that_cannot_be_read_causes_no_problems_of_other_keys(wrong: str, here: Path):
    (here / "bakeoff.yaml").write_text(wrong)
    with pytest.raises(UsageError) as error:
        read_suite(None)
    assert len(str(error.value).splitlines()) == 1


def test_a_problem_that_many_cases_have_is_told_once(here: Path):
    case = "  - {input: France, expected: Paris}\n"
    (here / "bakeoff.yaml").write_text(GOOD.replace(case, case * 5).replace("{{ input }}", "{{ place }}"))
    with pytest.raises(UsageError) as error:
        build_plan(read_suite(None))
    assert str(error.value).endswith("there are input (for 5 cases, first at bakeoff.yaml:4)")


def test_a_judge_without_a_model_is_a_warning(here: Path, bakeoff: Bakeoff):
    (here / "bakeoff.yaml").write_text(GOOD.replace("[exact]", "[{judge: Is it polite?}]"))
    done = bakeoff("eval", "--check")
    assert done.returncode == 0
    assert "scorers[0].judge: no model is named, so that the small embedded one judges" in done.stderr


def test_a_pyproject_that_is_not_toml_is_an_error_if_it_seems_to_have_our_table(here: Path, bakeoff: Bakeoff):
    (here / "pyproject.toml").write_text('[tool.bakeoff]\nsubjects = ["oracle"\n')
    (here / "bakeoff.yaml").unlink(missing_ok=True)
    done = bakeoff("eval", "--check")
    assert (done.returncode, "pyproject.toml:" in done.stderr, "this is not TOML" in done.stderr) == (2, True, True)


def test_a_name_in_single_braces_is_a_warning_if_cases_have_such_a_value(here: Path, bakeoff: Bakeoff):
    (here / "bakeoff.yaml").write_text(GOOD.replace("{{ input }}", "{input} {city} {{ input }}"))
    done = bakeoff("eval", "--check")
    assert done.returncode == 0
    assert done.stderr == "warning: bakeoff.yaml:2: prompts: `{input}` is not filled: write `{{ input }}`\n"


def test_a_wrong_name_of_a_configuration_gets_the_nearest_file(here: Path, bakeoff: Bakeoff):
    (here / "bakeoff.yaml").write_text(GOOD)
    done = bakeoff("eval", "bakeoff.yml")
    assert (done.returncode, done.stderr) == (2, "error: bakeoff.yml does not exist: did you mean 'bakeoff.yaml'?\n")
    assert bakeoff("evla").stderr == "error: no such command 'evla'. Did you mean 'eval'? See `bakeoff --help`\n"


def test_a_good_file_is_fine_and_nothing_runs(here: Path, bakeoff: Bakeoff):
    (here / "bakeoff.yaml").write_text(GOOD)
    done = bakeoff("eval", "--check")
    assert (done.returncode, done.stdout) == (0, "bakeoff.yaml is fine: 1 case × 1 subject × 1 round\n")
    assert not (here / "results").exists()


def test_the_schema_that_is_printed_is_a_schema_and_fits_the_first_configuration(bakeoff: Bakeoff):
    schema = json.loads(bakeoff("eval", "--schema").stdout)
    assert schema == config_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    config = first_files()["bakeoff.yaml"]
    jsonschema.validate(yaml.safe_load(config), schema)
    assert config.startswith(f"# yaml-language-server: $schema={SCHEMA_NAME}\n")


SHORT_AND_LONG = [
    {"prompts": "a", "scorers": "exact", "cases": "file:cases.csv"},
    {
        "prompts": ["a", {"file": "b.txt"}],
        "scorers": [{"judge": "polite?"}, {"contains": "b"}, {"equals": 4, "path": "a[0].b"}, "is-json"],
        "judge": "openai:gpt-5",
    },
    {
        "subjects": ["oracle", "local:smollm2", {"command": ["cat"]}, {"function": "m:f"}],
        "cases": ["a text", {"input": "b", "expected": ["c"], "scorers": "contains", "tags": ["d"]}],
        "scorers": [{"contains": {"ignore_case": True}, "name": "e"}, {"checks": [{"regex": "f"}]}],
        "limits": {"max_cost": 1, "jobs": 2},
    },
]


@pytest.mark.parametrize("config", SHORT_AND_LONG)
def test_the_schema_accepts_short_and_long_forms(config: object):
    assert list(jsonschema.Draft202012Validator(config_schema()).iter_errors(config)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"treshold": 1},
        {"scorers": ["exakt"]},
        {"subjects": ["gpt-5"]},
        {"scorers": [{"contains": {"x": 1}}]},
        {"rounds": 0},
        {"transform": 5},
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(wrong: dict[str, object]):
    good = {"prompts": "a", "cases": [{"expected": "b"}], "scorers": ["exact"]}
    jsonschema.validate(good, config_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**good, **wrong}, config_schema())


def test_init_writes_a_file_that_works(here: Path, bakeoff: Bakeoff):
    assert bakeoff("init", "eval").returncode == 0
    assert bakeoff("eval", "--check").stdout.startswith("bakeoff.yaml is fine: 5 cases × 4 subjects")


def reference_tables() -> str:
    """Return the tables of the reference page: every key with its default and its meaning."""
    sections: dict[str, type[BaseModel]] = {
        "Keys of the file": EvalConfig,
        "A prompt": PromptEntry,
        "A subject": SubjectEntry,
        "A case, or a source of cases": CaseEntry,
        "`limits`": LimitsConfig,
    }
    tables = [f"## {title}\n\n{_table(model)}" for title, model in sections.items()]
    short = "".join(f"| `{known.kind}` | `{known.main}` |\n" for known in kinds_for_files().values() if known.main)
    kinds = ", ".join(f"`{kind}`" for kind in kinds_for_files())
    scorers = f"Kinds: {kinds}.\n\n| `- kind: value` | stands for the option |\n|---|---|\n{short}"
    return "\n".join((*tables, f"## A scorer\n\n{scorers}"))


def _table(model: type[BaseModel]) -> str:
    lines = ["| key | default | |", "|---|---|---|"]
    for name, info in model.model_fields.items():
        default = info.get_default(call_default_factory=True)
        plain = default is not None and isinstance(default, str | int | float)
        shown = f"`{json.dumps(default)}`".replace('"', "") if plain else "–"
        lines.append(f"| `{name}` | {shown} | {(info.description or '').replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def test_the_reference_page_has_every_key_as_the_code_has_it():
    page = (Path(__file__).parents[3] / "docs" / "reference" / "eval-config.md").read_text("utf-8")
    assert reference_tables() in page, "write what `reference_tables()` gives into the page"
