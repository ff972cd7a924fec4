from datetime import date

import pytest
from entries import Entry, SheetError, parse, parse_line

from report import billable, by_project, by_week, clock, minutes, overlaps, reports, with_tags


def entry(day, start, end, project="Shop", tags=()):
    return Entry(date.fromisoformat(day), start, end, project, "", tuple(tags))


def test_a_line_is_read():
    assert parse_line("2031-03-04 22:30-01:15 Harbour: crane  check #night\t#Urgent #NIGHT now") == Entry(
        date(2031, 3, 4), 1350, 1515, "Harbour", "crane check now", ("night", "urgent")
    )


def test_lines_know_nothing_of_each_other():
    assert parse_line("2031-03-04 10:00-11:00 A: #one").tags == ("one",)
    assert parse_line("2031-03-04 10:00-11:00 A: #two").tags == ("two",)
    assert parse_line("2031-03-04 10:00-11:00 A:").tags == ()


def test_the_project_ends_at_the_first_colon():
    read = parse_line("  2031-03-04 08:00-24:00 Old Mill : see: plan #c#  ")
    assert (read.project, read.note, read.start, read.end, read.tags) == ("Old Mill", "see: plan", 480, 1440, ("c#",))


@pytest.mark.parametrize(
    "line",
    [
        "2031-03-04 10:00-11:00 no project",
        "2031-03-04 10:00-11:00  : nothing",
        "2031-03-04 10:00-10:00 A: no time",
        "2031-03-04 00:00-00:00 A: no time",
        "2031-03-04 23:20-23:20 A: no time",
        "2031-03-04 10:60-11:00 A: x",
        "2031-03-04 10:00-24:01 A: x",
        "2031-02-30 10:00-11:00 A: x",
        "2031-03-04 9:00-11:00 A: x",
        "",
    ],
)
def test_mistakes_are_seen(line):
    with pytest.raises(SheetError):
        parse_line(line)


def test_a_sheet_is_read_and_skips_what_says_nothing():
    text = "# March\n\n2031-03-04 10:00-11:00 A: x\n   \n  # more\n2031-03-05 10:00-11:00 B: y\n"
    assert [read.project for read in parse(text)] == ["A", "B"]


def test_a_mistake_is_found_by_its_line():
    with pytest.raises(SheetError) as caught:
        parse("# March\n\n2031-03-04 10:00-11:00 A: x\n2031-03-32 10:00-11:00 A: x\n")
    assert caught.value.number == 4


def test_durations():
    assert minutes(entry("2031-03-04", 0, 1440)) == 1440
    assert minutes(entry("2031-03-04", 1350, 1515)) == 165


@pytest.mark.parametrize(
    ("duration", "text"), [(125, "2:05"), (0, "0:00"), (-30, "-0:30"), (-125, "-2:05"), (6000, "100:00")]
)
def test_durations_are_written(duration, text):
    assert clock(duration) == text


def test_projects_come_in_order():
    entries = [
        entry("2031-03-04", 0, 60, "B"),
        entry("2031-03-04", 60, 120, "A"),
        entry("2031-03-04", 0, 800, "C"),
        entry("2031-03-04", 0, 30, "D"),
        entry("2031-03-04", 0, 40, "D"),
    ]
    assert list(by_project(entries).items()) == [("C", 800), ("D", 70), ("A", 60), ("B", 60)]


def test_weeks_come_in_order_and_know_their_year():
    entries = [
        entry("2031-02-12", 0, 10),
        entry("2030-12-31", 1430, 1450),
        entry("2027-01-01", 0, 30),
        entry("2031-01-01", 0, 40),
        entry("2026-12-28", 0, 50),
    ]
    assert list(by_week(entries).items()) == [("2026-W53", 80), ("2031-W01", 60), ("2031-W07", 10)]


def test_overlaps_are_found_among_all():
    long = entry("2031-03-04", 0, 600, "long")
    first = entry("2031-03-04", 10, 20, "first")
    second = entry("2031-03-04", 20, 30, "second")
    touching = entry("2031-03-04", 600, 700, "touching")
    assert overlaps([second, long, touching, first]) == [(second, long), (long, first)]


def test_overlaps_reach_across_midnight():
    night = entry("2031-03-31", 1300, 1500, "night")
    morning = entry("2031-04-01", 59, 100, "morning")
    later = entry("2031-04-01", 60, 100, "later")
    assert overlaps([morning, night]) == [(morning, night)]
    assert overlaps([night, later]) == []


def test_tags_choose_entries():
    one, both = entry("2031-03-04", 0, 1, tags=["a"]), entry("2031-03-04", 0, 1, tags=["a", "b"])
    plain = entry("2031-03-04", 0, 1)
    entries = [plain, one, both]
    assert with_tags(entries) == entries
    assert with_tags(entries, (tag for tag in ["A"])) == [one, both]
    assert with_tags(entries, ["a"], (tag for tag in ["B", "c"])) == [one]
    assert with_tags(entries, unwanted=["b"]) == [plain, one]


def test_every_entry_is_rounded_up():
    entries = [entry("2031-03-04", 0, 15), entry("2031-03-04", 0, 16), entry("2031-03-04", 0, 1)]
    assert billable(entries, 15) == 60


def test_every_project_has_its_own_report():
    lines = reports([entry("2031-03-04", 0, 165, "Harbour"), entry("2031-03-04", 0, 5, "Mill")])
    assert [line() for line in lines.values()] == ["Harbour 2:45", "Mill 0:05"]
