"""Expected calls are checked against the tools' schemas before a model is asked."""

from pathlib import Path

import pytest

from bakeoff.doors.mcp.expectations import impossible_calls, unknown_offers
from bakeoff.mcp import ServerTool

from ...warm_bakeoff import Bakeoff
from .config_texts import GOOD, changed

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "days": {"type": "integer", "minimum": 1},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "where": {"$ref": "#/$defs/place"},
        "hours": {"type": "array", "items": {"type": "integer"}},
        "more": {"type": "object", "properties": {"lang": {"enum": ["en", "no"]}}},
        "free": {},
    },
    "$defs": {"place": {"type": "object", "properties": {"lat": {"type": "number"}}}},
}
TOOL = ServerTool(server="weather", name="forecast", input_schema=SCHEMA)


@pytest.mark.parametrize(
    ("parameters", "place", "problem"),
    [
        ("{citty: Oslo}", "citty", "the tool has no parameter 'citty': did you mean 'city'?"),
        ("{days: '3'}", "days", "'3' is not possible: the tool's schema says integer, minimum 1"),
        ("{days: 0}", "days", "0 is not possible: the tool's schema says integer, minimum 1"),
        ("{unit: kelvin}", "unit", "'kelvin' is not possible: the tool accepts 'celsius', 'fahrenheit'"),
        ("{unit: {value: Kelvin, caseInsensitive: true}}", "unit.value", "'Kelvin' is not possible"),
        ("{unit: {oneOf: [celsius, kelvin]}}", "unit.oneOf[1]", "'kelvin' is not possible"),
        ("{days: {regex: '3'}}", "days.regex", "matches texts only: the tool's schema says integer, minimum 1"),
        ("{city: {value: 3, approx: 1}}", "city.approx", "compares numbers only"),
        ("{city: {value: {a: 1}, exact: true}}", "city.value", "{'a': 1} is not possible"),
        ("{where: {lat: north}}", "where.lat", "'north' is not possible: the tool's schema says number"),
        ("{where: {lon: 3}}", "where.lon", "the tool has no parameter 'lon'"),
        ("{unit: {regex: ^kel}}", "unit.regex", "'^kel' matches no possible value: the tool accepts 'celsius'"),
        ("{hours: [1, two]}", "hours[1]", "'two' is not possible"),
        ("{hours: 1}", "hours", "1 is not possible: the tool's schema says array"),
        ("{more: {lang: {value: de, optional: true}}}", "more.lang.value", "'de' is not possible"),
    ],
)
def test_what_no_correct_call_can_have_is_named_with_its_place(read, parameters: str, place: str, problem: str):
    (told,) = impossible_calls(read(changed("{city: Oslo}", parameters)), [TOOL])
    assert told.partition(": ")[0].endswith("suite.yaml:9")
    assert f"testCases[0].expectedOutput.parameters.{place}: {problem}" in told


@pytest.mark.parametrize(("written", "place"), [("{call}", "[0]"), ("[{call}, {call}]", "[0][1]")])
def test_alternatives_are_checked_like_the_expected_calls(read, written: str, place: str):
    call = "{serverName: weather, toolName: forecast, parameters: {citty: Oslo}}"
    alternatives = f"    alternatives: [{written.replace('{call}', call)}]\n"
    told = impossible_calls(read(changed("testCases:\n  - ", f"testCases:\n  -\n{alternatives}    ")), [TOOL])
    assert f"alternatives{place}.parameters.citty: the tool has no parameter 'citty'" in told[-1]


@pytest.mark.parametrize(
    "parameters",
    [
        "{city: Oslo, days: 3, unit: celsius, where: {lat: 59.9}, hours: [6, 18], more: {lang: en}, free: [1]}",
        "{unit: {value: CELSIUS, caseInsensitive: true}, days: {value: 3, approx: 1}, city: {regex: '^O'}}",
        "{unit: {regex: ^Cel, caseInsensitive: true}}",
        "{unit: {any: true}, days: {optional: true}, hours: [{any: true}], more: {lang: {oneOf: [en, 'no']}}}",
    ],
)
def test_what_a_correct_call_can_have_is_accepted(read, parameters: str):
    assert impossible_calls(read(changed("{city: Oslo}", parameters)), [TOOL]) == []


@pytest.mark.parametrize("schema", [{"additionalProperties": True}, {"patternProperties": {"^x": {}}}])
def test_a_tool_that_takes_other_parameters_may_be_expected_to(read, schema: dict[str, object]):
    tool = TOOL.model_copy(update={"input_schema": {**SCHEMA, **schema}})
    assert impossible_calls(read(changed("{city: Oslo}", "{country: Norway}")), [tool]) == []
    assert impossible_calls(read(GOOD), [TOOL.model_copy(update={"input_schema": {"type": "object"}})]) == []


@pytest.mark.parametrize(("more", "number"), [("", 1), ("    expectedError: true\n", 0)])
def test_a_call_without_a_required_parameter_is_only_expected_to_fail(read, more: str, number: int):
    tool = TOOL.model_copy(update={"input_schema": {**SCHEMA, "required": ["city", "days"]}})
    suite = read(changed("testCases:\n  - ", f"testCases:\n  -\n{more}    "))
    told = impossible_calls(suite, [tool])
    assert len(told) == number
    assert all("parameters: the tool requires 'days', and" in problem for problem in told)


@pytest.mark.parametrize(
    ("offered", "told"),
    [
        ("other", ["this case does not offer 'forecast': add it to the case's `tools`"]),
        ("weather/forecast", []),
        ("forecast", []),
    ],
)
def test_a_case_offers_the_tools_that_it_wants(read, offered: str, told: list[str]):
    suite = read(changed("testCases:\n  - ", f"testCases:\n  - tools: [{offered}]\n    "))
    found = unknown_offers(suite, [TOOL, TOOL.model_copy(update={"name": "other"})])
    assert [problem.partition("toolName: ")[2] for problem in found] == told


def test_only_the_selected_cases_are_checked(read):
    assert impossible_calls(read(changed("{city: Oslo}", "{days: 0}")), [TOOL], {2}) == []


def test_nothing_is_asked_if_an_expectation_is_impossible(bakeoff: Bakeoff, tmp_path: Path):
    bakeoff("mcp", "init", str(tmp_path))
    suite = tmp_path / "mcp-testing-framework.yaml"
    text = suite.read_text()
    suite.write_text(text.replace("local:smollm2", "scripted:null").replace("minutes: 12", "minutes: twelve", 1))
    done = bakeoff("mcp", "evaluate", str(suite))
    assert done.returncode == 2, done.stdout
    assert "minutes: 'twelve' is not possible: the tool's schema says " in done.stderr
    assert not (tmp_path / "results").exists()
