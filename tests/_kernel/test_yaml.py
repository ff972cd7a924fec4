"""YAML whose values know their lines."""

from pathlib import Path

import pytest
from pydantic import Field

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.yaml import ConfigError, PlacedYaml, parse_yaml, read_yaml, written
from bakeoff.errors import UsageError

FILE = Path("suite.yaml")


class Inner(FrozenModel):
    name: str
    count: int = Field(default=1, ge=1)


class Outer(FrozenModel):
    title: str = ""
    items: tuple[Inner | str, ...] = ()
    rate: float = Field(default=1.0, ge=0, le=1)


class AtLeastTwo(FrozenModel):
    names: tuple[str, ...] = Field(min_length=2)


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, FILE).read(Outer)
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: yes", {"a": "yes"}),
        ("a: on", {"a": "on"}),
        ("a: 2024-01-01", {"a": "2024-01-01"}),
        ("a: 1:30", {"a": "1:30"}),
        ("a: 010", {"a": 10}),
        ("a: 0o10", {"a": 8}),
        ("a: 0xff", {"a": 255}),
        ("a: -3", {"a": -3}),
        ("a: 1.80", {"a": 1.8}),
        ("a: 1e3", {"a": 1000.0}),
        ("a: .5", {"a": 0.5}),
        ("a: '90'", {"a": "90"}),
        ("a: true", {"a": True}),
        ("a: False", {"a": False}),
        ("a: ~", {"a": None}),
        ("a:", {"a": None}),
        ("a: null", {"a": None}),
        ("a: ''", {"a": ""}),
        ("a: [1, {b: c}]", {"a": [1, {"b": "c"}]}),
        ("a: |\n  one\n  two\n", {"a": "one\ntwo\n"}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("1: one", {"1": "one"}),
        ("", None),
        ("a: ${NAME}", {"a": "${NAME}"}),
    ],
)
def test_values_are_those_of_yaml_1_2(text, value):
    assert parse_yaml(text, FILE).value == value


def test_a_value_that_does_not_fit_is_named_with_its_line_key_and_value():
    assert problems("title: x\nitems:\n  - name: a\n  - name: b\n    count: 0\n") == [
        "suite.yaml:5: items[1].count: 0: has to be at least 1",
        "suite.yaml:4: items[1]: an object with name, count: has to be a text",
    ]


def test_all_problems_are_told_at_once():
    assert problems("rate: 1.7\ntitel: x\n") == [
        "suite.yaml:1: rate: 1.7: has to be at most 1",
        "suite.yaml:2: titel: is not a key that is known here: did you mean 'title'?",
    ]


def test_items_that_are_wrong_do_not_make_a_list_too_short_and_a_short_list_stays_short():
    def told(text: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            parse_yaml(text, FILE).read(AtLeastTwo)
        return list(caught.value.problems)

    assert told("names: [a, 2]") == ["suite.yaml:1: names[1]: 2: has to be a text: put it in quotes"]
    assert told("names: [a]") == ["suite.yaml:1: names: ['a']: needs at least 2"]
    assert told("names: [1]") == [
        "suite.yaml:1: names[0]: 1: has to be a text: put it in quotes",
        "suite.yaml:1: names: [1]: needs at least 2",
    ]


def test_a_missing_key_is_looked_for_where_it_should_stand():
    assert "suite.yaml:2: items[0].name: is missing" in problems("items:\n  - count: 3\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: 2\na: 3\n", "suite.yaml:3: a: is here twice, first on line 1"),
        ("a: !!python/object:os.system x", "suite.yaml:1: a: the tag"),
        ("a: !secret x", "suite.yaml:1: a: the tag '!secret' has no meaning here"),
        ("a: [1, 2", "suite.yaml:1: this is not YAML"),
        ("a:\n\t- b", "suite.yaml:2: this is not YAML"),
        ("a: 1\n---\nb: 2\n", "suite.yaml:2: this is not YAML"),
        ("? [a]\n: b", "suite.yaml:1: a key must be a text"),
        ("x: &x {a: 1}\ny:\n  <<: *x\n", "suite.yaml:3: y: `<<` merges are not supported"),
        ("a: 1e999", "suite.yaml:1: a: 1e999 is too large"),
        ("a: *nothing", "suite.yaml:1: this is not YAML"),
        ("[" * 150 + "]" * 150, "nested more than 100 levels deep"),
        ("a: \x00", "this is not YAML"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(text, told):
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, FILE)
    assert told in str(caught.value)


def test_a_few_aliases_cannot_become_a_billion_values():
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, 10)]
    with pytest.raises(ConfigError, match="more than 200,000 values"):
        parse_yaml("\n".join(levels), FILE)


def test_an_alias_that_holds_itself_is_refused():
    with pytest.raises(ConfigError, match="nested more than"):
        parse_yaml("a: &a [*a]", FILE)


def test_deep_nesting_is_refused_with_a_sentence():
    with pytest.raises(ConfigError, match="nested"):
        parse_yaml("[" * 100_000, FILE)


def test_a_file_that_is_not_text_or_not_there_is_told(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9")
    with pytest.raises(UsageError, match=r"latin\.yaml is not UTF-8 text \(byte 3\)"):
        read_yaml(tmp_path / "latin.yaml")
    with pytest.raises(UsageError, match=r"none\.yaml cannot be read: No such file"):
        read_yaml(tmp_path / "none.yaml")


def test_keys_are_written_as_people_write_them():
    assert written(("testCases", 2, "prompt")) == "testCases[2].prompt"


def test_an_unknown_key_without_a_known_line_is_named():
    class Model(FrozenModel):
        colour: str = ""

    with pytest.raises(ConfigError, match="color: is not a key that is known here: did you mean 'colour'"):
        PlacedYaml(Path("x.json"), {"color": "red"}, {}).read(Model)
