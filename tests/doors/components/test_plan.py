"""Test the way from the options to the plan, and back to what to type."""

import shlex
from pathlib import Path

import pytest

from bakeoff.doors.components.plan import ComponentsRequest, build_plan, command_line
from bakeoff.doors.components.suites import ComponentSuite, Layout
from bakeoff.errors import UsageError
from bakeoff.plan import Plan

SUITE = ComponentSuite("counter", Path("counter"), Layout(), "test.ts", "Count.", "it()", "<p/>")


def plan_of(**asked: object) -> Plan:
    return build_plan(ComponentsRequest.model_validate(asked), [SUITE])


def names(plan: Plan) -> list[str]:
    return [spec.name for spec in plan.subjects]


def test_subjects_are_models_times_the_axis_of_servers() -> None:
    plan = plan_of(models=["a/one", "b/two"], mcp=["none", "http:https://docs.example/mcp"])
    assert names(plan) == ["a/one", "a/one + docs.example", "b/two", "b/two + docs.example"]
    assert [spec.options.get("mcp") for spec in plan.subjects[:2]] == [None, ["http:https://docs.example/mcp"]]


def test_several_servers_can_be_one_configuration() -> None:
    plan = plan_of(models=["a/one"], mcp=["http:https://docs.example/mcp + stdio:server --flag"])
    assert names(plan) == ["a/one + docs.example + server"]
    with pytest.raises(UsageError, match="`none` stands alone"):
        plan_of(models=["a/one"], mcp=["none + http"])


def test_two_servers_of_one_host_make_two_names() -> None:
    plan = plan_of(models=["a/one"], mcp=["http:https://x.example/a", "http:https://x.example/b"])
    assert names(plan) == ["a/one + x.example", "a/one + x.example (2)"]


def test_controls_are_no_models_and_meet_no_server() -> None:
    plan = plan_of(models=["oracle", "nop", "cheat", "cheat:inject-prompt", "oracle"], mcp=["none", "http"])
    assert [(spec.kind, spec.name) for spec in plan.subjects] == [
        ("oracle", "oracle"),
        ("nop", "nop"),
        ("cheat", "cheat"),
        ("cheat", "cheat:inject-prompt"),
    ]


@pytest.mark.parametrize("server", ["ftp:x", "http:nowhere", "none + http"])
def test_a_server_that_makes_no_sense_is_refused_with_controls_too(server: str) -> None:
    with pytest.raises(UsageError):
        plan_of(models=["oracle"], mcp=["none", server])


def test_a_seed_is_sent_only_if_it_was_asked_for() -> None:
    local, remote = plan_of(models=["local:smollm2", "a/one"]).subjects
    assert (local.options.get("send_seed"), remote.options.get("send_seed")) == (None, False)
    assert plan_of(models=["a/one"], seed=3).subjects[0].options.get("send_seed") is None


def test_a_model_of_this_machine_must_call_tools_and_may_not_go_on_for_ever() -> None:
    local, remote = plan_of(models=["local:smollm2", "a/one"]).subjects
    assert local.options["tool_choice"] == "required"
    assert local.options["max_tokens"] == 512
    assert not {"tool_choice", "max_tokens"} & set(remote.options)


def test_a_run_without_the_test_tool_has_other_attempts_than_one_with_it() -> None:
    with_, without = plan_of(models=["a/one"]), plan_of(models=["a/one"], test_tool=False)
    assert with_.trial(0).attempt_key != without.trial(0).attempt_key
    assert without.settings["test_tool"] is False


def test_without_pricing_nobody_asks_for_prices() -> None:
    (spec,) = plan_of(models=["a/one"], pricing=False).subjects
    assert spec.options["priced"] is False


def test_no_model_is_an_error_that_says_what_to_type() -> None:
    with pytest.raises(UsageError, match="--model local:smollm2"):
        plan_of()


def test_a_word_that_is_no_model_is_refused() -> None:
    with pytest.raises(UsageError, match="'gpt' is not a model name"):
        plan_of(models=["gpt"])
    with pytest.raises(UsageError, match=r"--model 'a/\\x1b\[2J': use printable characters"):
        plan_of(models=["a/\x1b[2J"])
    with pytest.raises(UsageError, match="--mcp ' ': use printable characters"):
        plan_of(models=["a/one"], mcp=[" "])


def test_the_command_line_says_what_differs_from_the_usual() -> None:
    request = ComponentsRequest(
        suites=Path("my suites"),
        only=("a", "b"),
        models=("local:smollm2",),
        mcp=("none", "stdio:npx -y x"),
        test_tool=False,
        hide_tests=True,
        rounds=3,
        temperature=0.5,
    )
    assert shlex.join(command_line(request, jobs=2)) == (
        "bakeoff run --suites 'my suites' --suite a --suite b --model local:smollm2 --mcp none --mcp 'stdio:npx -y x' "
        "--no-test-tool --hide-tests --rounds 3 --temperature 0.5 --jobs 2"
    )
    assert command_line(ComponentsRequest(models=("oracle",))) == ["bakeoff", "run", "--model", "oracle"]
