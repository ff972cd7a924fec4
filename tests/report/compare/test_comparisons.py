"""Check the reports of a run that ends when it is decided."""

from typing import Any

from bakeoff.report.blocks import Datum, Table, joined
from bakeoff.report.compare.within_run import describe_comparisons
from bakeoff.report.summary import Comparisons
from bakeoff.stats.intervals import Interval
from bakeoff.stats.sequential import PairDecision, SequentialDecision


def pair_of(decision: SequentialDecision, difference: float, low: float, high: float, **more: Any) -> PairDecision:
    interval = Interval(low=low, high=high, method="anytime-valid betting")
    return PairDecision(
        **{"first": "a", "second": "b", "decision": decision, "cases": 40, "difference": difference, **more},
        interval=interval,
    )


def table_of(*pairs: PairDecision, **more: Any) -> Table:
    usual = {"alpha": 0.05, "margin": None, "trials_planned": 400, "trials_saved": 100, "trials_left": 0}
    [table] = describe_comparisons(Comparisons(pairs=pairs, **{"cost_saved": None, **usual, **more})).blocks
    assert isinstance(table, Table)
    return table


def row_of(pair: PairDecision) -> list[str]:
    [row] = table_of(pair).rows
    return [joined(cell.text) if isinstance(cell, Datum) else str(cell) for cell in row]


def notes_of(table: Table) -> str:
    return " ".join(map(joined, table.notes))


def test_the_better_subject_is_named_first_and_the_difference_is_its_lead() -> None:
    lead = ["+30.0", "+10.0 to +50.0", "40"]
    assert row_of(pair_of(SequentialDecision.IMPROVED, 0.3, 0.1, 0.5)) == ["b is better than a", *lead]
    assert row_of(pair_of(SequentialDecision.REGRESSED, -0.3, -0.5, -0.1)) == ["a is better than b", *lead]


def test_an_equivalent_or_undecided_pair_names_the_leader_first() -> None:
    assert row_of(pair_of(SequentialDecision.EQUIVALENT, -0.01, -0.04, 0.02))[:2] == ["a and b are equivalent", "+1.0"]
    undecided = row_of(pair_of(SequentialDecision.UNDECIDED, 0.1, -0.1, 0.3))
    assert undecided == ["undecided: b and a", "+10.0", "-10.0 to +30.0", "40"]


def test_a_pair_without_a_case_has_no_numbers() -> None:
    nothing = PairDecision(
        first="a", second="b", decision=SequentialDecision.UNDECIDED, cases=0, difference=None, interval=None
    )
    assert row_of(nothing) == ["undecided: a and b", "–", "needs 2 cases", "0"]


def test_the_notes_say_what_was_saved_and_that_the_interval_holds_at_any_time() -> None:
    notes = notes_of(table_of(pair_of(SequentialDecision.IMPROVED, 0.3, 0.1, 0.5), cost_saved=1.5, margin=0.05))
    assert notes.startswith("Decided. 100 of 400 trials (25.0 %) were not needed, which saved about $1.50.")
    assert "within ±5 points" in notes
    assert "anytime-valid" in notes
    assert "in more than 5 % of runs." in notes


def test_the_notes_say_why_a_pair_is_open() -> None:
    open_pair = pair_of(
        SequentialDecision.UNDECIDED, 0.1, -0.1, 0.3, refused="refused: the baseline lost 3 of 30 trials"
    )
    decided = pair_of(SequentialDecision.IMPROVED, 0.3, 0.1, 0.5)
    ended = notes_of(table_of(open_pair, decided, trials_saved=0))
    assert ended.startswith("Not decided: 1 of 2 pairs; all cases were tried. No trial was saved.")
    assert "all 2 pairs together" in ended
    assert "Refused: the baseline lost 3 of 30 trials." in ended
    assert notes_of(table_of(open_pair, trials_left=7)).startswith("Not decided; the run is not finished.")
