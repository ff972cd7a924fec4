"""The seam: what doors may say, and what becomes of it."""

import sys
from pathlib import Path

import pytest

from bakeoff.report.blocks import (
    Axis,
    Code,
    Column,
    Datum,
    Facts,
    Fragment,
    Matrix,
    MatrixCell,
    Plot,
    Point,
    Section,
    Table,
    TextBlock,
    TextSpan,
    frontier,
)
from bakeoff.report.render.html.drawing import HEIGHT, LEFT, WIDTH, draw, moment, tick_text, written
from bakeoff.report.render.html.render import Page
from bakeoff.report.scores import score_plots

SCORE = Axis(title="score", unit="percent")
COST = Axis(title="cost", unit="usd")
BAD = "<script>alert(1)</script>"


def point(label: str, x: float, y: float) -> Point:
    return Point(x=x, y=y, label=label, y_interval=(max(0.0, y - 0.1), min(1.0, y + 0.1)))


def html_of(*sections: Section) -> str:
    page = Page("index", "index.html", Path("index.html"))
    before, after = page.halves(title="t", menu=[], runs=0, rows=0, sections=sections, leaderboard=None)
    return (before + after).decode()


@pytest.mark.parametrize(
    "href", ["javascript:alert(1)", " javascript:alert(1)", "data:text/html,x", "//evil.example/", "\\\\evil", "a\nb"]
)
def test_a_link_leads_only_to_this_file_its_neighbours_or_the_web(href: str) -> None:
    with pytest.raises(ValueError, match="is not a link"):
        Datum(text="x", href=href)


@pytest.mark.parametrize("href", ["#t=5", "runs/one/report.html", "../x.html", "https://example.org/a?b=c"])
def test_a_harmless_link_is_taken(href: str) -> None:
    assert Datum(text="x", href=href).href == href


def test_an_id_cannot_break_out_of_its_attribute() -> None:
    with pytest.raises(ValueError, match="is not an id"):
        Section(id='x" onload="', title="x", blocks=())


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        point("x", float("nan"), 0.5)


def test_the_frontier_is_what_nothing_beats_in_both() -> None:
    points = (point("cheap", 1, 0.3), point("good", 5, 0.9), point("worse", 6, 0.8), point("nothing", 0, 0))
    assert [one.label for one in frontier(points) if one.frontier] == ["cheap", "good"]


def test_two_that_are_equally_good_are_both_on_the_frontier() -> None:
    assert [one.frontier for one in frontier((point("a", 1, 0.5), point("b", 1, 0.5)))] == [True, True]


@pytest.mark.parametrize("costs", [(0.0, 0.0), (0.001, 30.0), (1e-9, 1e9), (5.0, 5.0), (-1.0, 2.0), (0.0, 1e-300)])
def test_every_mark_and_tick_lies_on_the_canvas(costs: tuple[float, float]) -> None:
    points = tuple(point(f"subject {number}", cost, 0.5) for number, cost in enumerate(costs))
    drawing = draw(Plot(title="p", x=COST, y=SCORE, points=points))
    places = [spot.x for spot in drawing.spots] + [tick.place for tick in drawing.x_ticks]
    assert all(LEFT <= place <= WIDTH for place in places)
    assert all(0 <= spot.y <= HEIGHT for spot in drawing.spots)
    assert len(drawing.x_ticks) <= 8


def test_labels_of_close_marks_do_not_lie_on_each_other() -> None:
    points = tuple(point(f"subject {number}", 1 + number / 100, 0.5) for number in range(5))
    drawing = draw(Plot(title="p", x=COST, y=SCORE, points=points))
    assert len({(spot.anchor, spot.label_y) for spot in drawing.spots}) == 5


@pytest.mark.parametrize(("count", "name"), [(10, "short"), (9, "a name that takes much room")])
def test_from_ten_on_or_where_names_would_collide_marks_are_numbered_and_named_in_a_legend(
    count: int, name: str
) -> None:
    points = tuple(point(f"{name} {number}", 1 + number / 1000, 0.5) for number in range(count))
    drawing = draw(Plot(title="p", x=COST, y=SCORE, points=points))
    assert [spot.label for spot in drawing.spots] == [str(number) for number in range(1, count + 1)]
    assert drawing.legend == tuple(one.label for one in points)


def test_one_subject_has_no_plot() -> None:
    assert score_plots((point("a", 1, 0.5),), (point("a", 1, 0.5),)) is None
    assert score_plots((point("a", 1, 0.5), point("b", 1, 0.5)), ()) is not None


@pytest.mark.parametrize(
    ("costs", "told"),
    [
        ((), "No costs are known."),
        ((0.0, 0.0), "Nothing was paid."),
        ((0.5,), "Only one subject has a known cost."),
        ((0.0,), "The costs that are known are $0."),
    ],
)
def test_the_plots_of_scores_say_why_they_lack_costs(costs: tuple[float, ...], told: str) -> None:
    timed = (point("a", 1, 0.5), point("b", 2, 0.5))
    section = score_plots(tuple(point("a", cost, 0.5) for cost in costs), timed)
    assert section is not None
    assert str(section.lead).endswith(told)


def test_prices_that_lie_far_apart_get_a_logarithmic_axis() -> None:
    far = draw(Plot(title="p", x=COST, y=SCORE, points=(point("a", 0.001, 0.5), point("b", 1, 0.5))))
    near = draw(Plot(title="p", x=COST, y=SCORE, points=(point("a", 0.5, 0.5), point("b", 1, 0.5))))
    assert (far.scale_note, near.scale_note) == ("logarithmic", "")


def test_values_are_written_for_people() -> None:
    assert [written(0.5, "percent"), written(0.25, "usd"), written(3, "seconds")] == ["50 %", "$0.2500", "3.0 s"]
    assert [tick_text(0, "usd"), tick_text(0.5, "usd"), tick_text(0.25, "seconds")] == ["0", "$0.5", "250 ms"]
    assert written(12345, "number") == "1.234e+04"
    assert [moment(None), moment(1_790_000_000), moment(1e300)] == ["–", "2026-09-21 14:13", "not a time"]


def test_every_block_is_drawn_and_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "a_door"
    (package / "templates").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "templates" / "own.html").write_text("<em>{{ said }}</em>")
    monkeypatch.syspath_prepend(tmp_path)
    span = TextSpan(value=0.5, low=0.25, high=0.75)
    rows = ((Datum(text=BAD, note=BAD, span=span), 5), (None, 2.5), ("x", Datum(text="lost", tone="lost")))
    points = frontier((point(BAD, 1, 0.5), point("b", 2, 0.6)))
    blocks = (
        Table(columns=(Column(title=BAD, help=BAD), Column(title="n", align="end")), rows=rows, caption=BAD),
        Plot(title=BAD, x=Axis(title=BAD, unit="usd"), y=SCORE, points=points),
        Matrix(corner=BAD, columns=(BAD, "b"), rows=((BAD, (MatrixCell(text=BAD, note=BAD), None)),), caption=BAD),
        Facts(pairs=((BAD, BAD),)),
        TextBlock(text=BAD),
        Code(text=BAD, title=BAD, folded=False),
        Code(text=BAD, language=BAD),
        Fragment(package="a_door", template="own.html", data={"said": BAD}),
    )
    html = html_of(Section(id="all", title=BAD, lead=BAD, blocks=blocks))
    sys.modules.pop("a_door", None)
    assert BAD not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 15
    assert "<em>&lt;script&gt;" in html
    assert "<polyline" in html
