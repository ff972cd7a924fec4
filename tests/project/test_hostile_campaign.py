"""The campaign's own logic: what it compares with SECURITY.md, and how it can fail."""

import random
import sys
from pathlib import Path

import pytest
from scripts.hostile.attacks import ATTACKS
from scripts.hostile.fuzz import mutated
from scripts.hostile.rows import Findings, Outcome, PromiseError, Row, differences, markdown, read_promises, table

PROMISES = """
# Security

| attack | what it tries | `process` as user | process as root | `bwrap` | docker |
|---|---|---|---|---|---|
| `fork-bomb` | start processes without end | limited | **limited** | limited: 64 of them | limited |
| `loopback` | call a server on loopback | possible | possible | prevented | n/a |

| figure | what is counted | promised |
|---|---|---|
| `finished-trials-lost` | after a kill | 0 |
| `kills` | of our processes | >= 300 |
| `memory` | in MB | <= 1,600 |
"""


def found(outcome: Outcome, attack: str = "fork-bomb", rung: str = "process", user: str = "user") -> Findings:
    return Findings([Row("escapes", attack, rung, user, outcome, "what happened")])


def test_promises_are_read_from_the_tables_of_the_document() -> None:
    promises = read_promises(PROMISES)
    assert promises.outcomes["fork-bomb", "process", "root"] == "limited"
    assert (
        promises.outcomes["loopback", "bwrap", "root"] == promises.outcomes["loopback", "bwrap", "user"] == "prevented"
    )
    assert promises.figures == {"finished-trials-lost": "0", "kills": ">= 300", "memory": "<= 1,600"}


def test_a_cell_can_promise_different_things_to_root_and_to_a_user() -> None:
    promises = read_promises(PROMISES.replace("| n/a |", "| limited as root, possible as user |"))
    assert promises.outcomes["loopback", "docker", "root"] == "limited"
    assert promises.outcomes["loopback", "docker", "user"] == "possible"


def test_a_cell_that_promises_nothing_is_an_error() -> None:
    with pytest.raises(PromiseError, match=r"'perhaps' \(fork-bomb, bwrap\)"):
        read_promises(PROMISES.replace("limited: 64 of them", "perhaps"))
    with pytest.raises(PromiseError, match="'few'"):
        read_promises(PROMISES.replace("| 0 |", "| few |"))


def test_what_happens_as_promised_is_no_difference() -> None:
    assert differences(read_promises(PROMISES), found("limited"), whole=False) == []


def test_worse_than_promised_is_a_failure_that_says_what_happened() -> None:
    (said,) = differences(read_promises(PROMISES), found("possible"), whole=False)
    assert said == "fork-bomb on process as user is possible, worse than promised (limited): what happened"


def test_better_than_promised_is_a_failure_too_because_the_document_is_untrue() -> None:
    (said,) = differences(read_promises(PROMISES), found("prevented", "loopback"), whole=False)
    assert "better than promised (possible)" in said


def test_an_attack_without_a_promise_is_named() -> None:
    assert differences(read_promises(PROMISES), found("limited", "new"), whole=False) == ["new is not in SECURITY.md"]


def test_the_worst_of_several_outcomes_counts() -> None:
    rows = [*found("limited").rows, *found("possible").rows, *found("limited").rows]
    assert len(differences(read_promises(PROMISES), Findings(rows), whole=False)) == 1


def test_a_rung_that_is_not_on_this_machine_is_not_compared() -> None:
    assert differences(read_promises(PROMISES), found("n/a"), whole=False) == []


def test_a_whole_campaign_tries_everything_that_is_promised() -> None:
    said = differences(read_promises(PROMISES), found("limited"), whole=True)
    assert said == [
        "loopback is promised, and nothing tries it",
        "finished-trials-lost is promised, and nothing measures it",
        "kills is promised, and nothing measures it",
        "memory is promised, and nothing measures it",
    ]


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("kills", 300, True),
        ("kills", 299, False),
        ("finished-trials-lost", 1, False),
        ("memory", 1600, True),
        ("x", 9, True),
    ],
)
def test_figures_keep_within_their_bounds(name: str, value: float, kept: bool) -> None:
    said = differences(read_promises(PROMISES), Findings(figures={name: value}), whole=False)
    assert (said == []) == bool(kept)


def test_the_table_has_a_line_for_each_attack_and_a_column_for_each_rung_and_user() -> None:
    rows = [*found("limited").rows, *found("possible", user="root").rows, *found("prevented", "loopback", "bwrap").rows]
    head, bomb, loopback = table(rows)
    assert head.split(maxsplit=1)[0] == "attack"
    assert bomb.split() == ["fork-bomb", "limited", "possible", "-", "-", "-", "-"]
    assert loopback.split() == ["loopback", "-", "-", "prevented", "-", "-", "-"]


def test_the_table_as_markdown_is_read_back() -> None:
    places = [(rung, user) for rung in ("process", "bwrap", "docker") for user in ("user", "root")]
    rows = [
        row for place in places for row in (*found("limited", "a", *place).rows, *found("possible", "b", *place).rows)
    ]
    head = "| attack | what | process as user | process as root | bwrap | docker |\n|---|---|---|---|---|---|\n"
    promises = read_promises(head + "\n".join(markdown(rows)))
    assert differences(promises, Findings(rows), whole=True) == []


def test_every_script_of_an_attack_is_python() -> None:
    assert len({attack.id for attack in ATTACKS}) == len(ATTACKS)
    for attack in ATTACKS:
        compile(attack.script, attack.id, "exec")


def test_mutations_are_the_same_for_the_same_seed() -> None:
    seed = b'{"a": [1, {"b": "c"}], "d": null}'
    made = [[mutated(seed, chance) for _ in range(200)] for chance in (random.Random(1), random.Random(1))]
    assert made[0] == made[1]
    assert len(set(made[0])) > 150


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: a user of its own is made with namespaces")
def test_the_half_of_a_user_runs_as_one_who_cannot_read_the_home_of_root(tmp_path: Path) -> None:
    import os
    import shutil

    from scripts.hostile.as_user import free_uid, new_home, processes_of, run_as_user

    if os.geteuid() != 0:
        pytest.skip("needs root: only root can become another user")
    uid = free_uid()
    home = new_home(uid)
    try:
        secret = Path("~root").expanduser() / ".profile"
        code = (
            "import os, pathlib, bakeoff\n"
            f"assert os.getuid() == os.geteuid() == {uid} and os.getgroups() == []\n"
            f"assert not os.access({str(secret)!r}, os.R_OK)\n"
            "pathlib.Path(os.environ['HOME'], 'done').touch()\n"
        )
        assert run_as_user([sys.executable, "-c", code], home=home, uid=uid, env=os.environ, readable=[]) == 0
        assert (home / "done").exists()
        assert processes_of(uid) == []
    finally:
        shutil.rmtree(home)
