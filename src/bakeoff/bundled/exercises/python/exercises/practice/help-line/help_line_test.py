import pytest
from help_line import DefinitionError, Machine


def note(text):
    return lambda machine, data: machine.context.append(text if data is None else f"{text}:{data}")


def tracked(name, **more):
    return {"enter": note(f"+{name}"), "exit": note(f"-{name}"), **more}


def telephone():
    return {
        "initial": "idle",
        "enter": note("never"),
        "exit": note("never"),
        "on": {"break": "broken", "log": {"do": note("log")}},
        "states": {
            "idle": tracked("idle", on={"ring": "call", "resume": "call#last", "jump": "call.talk.hold"}),
            "broken": tracked("broken", on={"fix": "call#last", "reset": "idle"}),
            "call": tracked(
                "call",
                initial="ringing",
                on={"hang_up": {"target": "idle", "do": note("bye")}, "again": "call", "hold": "call.talk.hold"},
                states={
                    "ringing": tracked("ringing", on={"answer": "call.talk"}),
                    "talk": tracked(
                        "talk",
                        initial="live",
                        on={"louder": {"do": note("louder")}, "restart": "call.talk.hold"},
                        states={
                            "live": tracked(
                                "live", on={"hold": "call.talk.hold", "hang_up": {"when": lambda *_: False}}
                            ),
                            "hold": tracked(
                                "hold", on={"back": "call.talk.live", "up": "call.talk", "same": "call.talk.hold"}
                            ),
                        },
                    ),
                },
            ),
        },
    }


def machine_after(*events):
    machine = Machine(telephone(), [])
    for event in events:
        assert machine.send(event) is True
    machine.context.clear()
    return machine


def test_it_begins_with_the_initial_state():
    machine = Machine(telephone(), log := [])
    assert (machine.state, log) == ("idle", ["+idle"])
    assert machine.context is log


def test_entering_goes_down_to_the_innermost_state():
    machine = machine_after()
    assert machine.send("ring", 7) is True
    assert machine.state == "call.ringing"
    assert machine.context == ["-idle:7", "+call:7", "+ringing:7"]
    assert [path for path in ["call", "call.ringing", "ringing", "idle", "call.talk", ""] if machine.is_in(path)] == [
        "call",
        "call.ringing",
    ]


def test_an_event_without_a_rule_changes_nothing():
    machine = machine_after("ring")
    assert machine.send("back") is False
    assert (machine.state, machine.context) == ("call.ringing", [])


def test_inner_rules_come_first_and_outer_ones_stand_in():
    machine = machine_after("ring", "answer")
    machine.send("hold")
    assert machine.context == ["-live", "+hold"]
    machine.send("hold")
    assert machine.context[2:] == ["-hold", "-talk", "-call", "+call", "+talk", "+hold"]


def test_a_guard_that_refuses_passes_the_event_outwards():
    machine = machine_after("ring", "answer")
    machine.send("hang_up", "x")
    assert machine.state == "idle"
    assert machine.context == ["-live:x", "-talk:x", "-call:x", "bye:x", "+idle:x"]


def test_a_rule_without_a_target_leaves_nothing():
    machine = machine_after("ring", "answer", "hold")
    machine.send("louder", 3)
    machine.send("log")
    assert (machine.state, machine.context) == ("call.talk.hold", ["louder:3", "log"])


@pytest.mark.parametrize(
    ("event", "state", "steps"),
    [
        ("same", "call.talk.hold", ["-hold", "+hold"]),
        ("up", "call.talk.live", ["-hold", "-talk", "+talk", "+live"]),
        ("restart", "call.talk.hold", ["-hold", "-talk", "+talk", "+hold"]),
        ("again", "call.ringing", ["-hold", "-talk", "-call", "+call", "+ringing"]),
    ],
)
def test_the_state_whose_rule_is_taken_is_always_left(event, state, steps):
    machine = machine_after("ring", "answer", "hold")
    machine.send(event)
    assert (machine.state, machine.context) == (state, steps)


def test_the_machine_as_a_whole_has_rules_too():
    machine = machine_after("ring", "answer")
    machine.send("break")
    assert (machine.state, machine.context) == ("broken", ["-live", "-talk", "-call", "+broken"])
    machine.send("break")
    assert machine.context[4:] == ["-broken", "+broken"]


def test_a_state_remembers_where_it_was_left():
    machine = machine_after("ring", "answer", "hold", "break")
    machine.send("fix")
    assert (machine.state, machine.context) == ("call.talk.hold", ["-broken", "+call", "+talk", "+hold"])
    machine = machine_after("ring", "answer", "hold", "break", "fix", "back", "break", "reset")
    machine.send("resume")
    assert machine.state == "call.talk.live"
    machine = machine_after()
    machine.send("resume")
    assert machine.state == "call.ringing"


def test_rules_are_tried_in_order():
    size = [
        {"when": lambda machine, data: data > 10, "target": "big"},
        {"when": lambda machine, data: data > 5, "do": note("middle")},
        "small",
    ]
    definition = {"initial": "small", "on": {"size": size}, "states": {"small": {}, "big": {}}}
    machine = Machine(definition, [])
    states = [machine.send("size", data) and machine.state for data in (7, 11, 7, 2)]
    assert states == ["small", "big", "big", "small"]
    assert machine.context == ["middle:7", "middle:7"]


def test_events_that_are_sent_by_actions_wait_for_their_turn():
    def again(machine, data):
        machine.context.append((machine.state, machine.send("next"), machine.send("next")))

    definition = {
        "initial": "a",
        "states": {
            "a": {"enter": again, "exit": note("-a"), "on": {"next": {"target": "b", "do": note("a>b")}}},
            "b": {"enter": note("+b"), "on": {"next": "c"}},
            "c": {"enter": note("+c"), "on": {"back": "a"}},
        },
    }
    machine = Machine(definition, [])
    steps = [("a", None, None), "-a", "a>b", "+b", "+c"]
    assert (machine.state, machine.context) == ("c", steps)
    assert machine.send("back") is True
    assert (machine.state, machine.context) == ("c", steps * 2)


def test_the_state_changes_between_leaving_and_entering():
    def where(machine, data):
        machine.context.append(machine.state)

    definition = {
        "initial": "a",
        "states": {
            "a": {"exit": where, "on": {"go": {"target": "b.c", "when": lambda *_: True, "do": where}}},
            "b": {"initial": "d", "enter": where, "states": {"c": {"enter": where}, "d": {}}},
        },
    }
    machine = Machine(definition, [])
    machine.send("go")
    assert machine.context == ["a", "a", "b.c", "b.c"]


def test_an_action_that_fails_is_reported_and_what_waits_is_forgotten():
    def fail(machine, data):
        machine.send("log")
        raise RuntimeError("no")

    definition = {
        "initial": "a",
        "on": {"log": {"do": note("log")}},
        "states": {
            "a": {"on": {"go": "b", "try": {"do": fail}}, "exit": note("-a")},
            "b": {"enter": fail, "on": {"go": "a"}},
        },
    }
    machine = Machine(definition, [])
    for event, state in [("try", "a"), ("go", "b")]:
        with pytest.raises(RuntimeError):
            machine.send(event)
        assert machine.state == state
    assert machine.send("go") is True
    assert (machine.state, machine.context) == ("a", ["-a"])


@pytest.mark.parametrize(
    "definition",
    [
        {"states": {"a": {}}},
        {"initial": "a"},
        {"initial": "b", "states": {"a": {}}},
        {"initial": "a", "states": {"a": {"initial": "b", "states": {"c": {}}}}},
        {"initial": "a", "states": {"a": {"on": {"go": "b"}}}},
        {"initial": "a", "states": {"a": {"on": {"go": ["a", {"target": "a.b"}]}}}},
        {"initial": "a", "states": {"a": {"on": {"go": "a#last"}}}},
        {"initial": "a", "states": {"a": {}}, "on": {"go": ""}},
        {"initial": "a.b", "states": {"a.b": {}}},
        {"initial": "", "states": {"": {}}},
        {"initial": "a", "states": {"a": {}, "b#last": {}}},
    ],
)
def test_definitions_must_make_sense(definition):
    called = []
    definition.get("states", {}).get("a", {})["enter"] = lambda *_: called.append("entered")
    with pytest.raises(DefinitionError):
        Machine(definition)
    assert called == []
