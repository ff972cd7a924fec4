from datetime import date

import pytest
from plant_rota import Plant, due, due_date, next_visit, water

TODAY = date(2031, 6, 10)


def test_a_plant_is_due_so_many_days_after_it_was_watered():
    assert due_date(Plant("fern", 3, date(2031, 6, 29)), TODAY) == date(2031, 7, 2)


def test_a_plant_that_was_never_watered_is_due_today():
    assert due_date(Plant("fern", 30), TODAY) == TODAY
    assert due_date(Plant("fern", 30), date(2031, 12, 31)) == date(2031, 12, 31)


@pytest.mark.parametrize("every", [0, -1])
def test_a_plant_needs_at_least_a_day(every):
    with pytest.raises(ValueError):
        Plant("fern", every)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (date(2031, 11, 25), date(2032, 3, 1)),
        (date(2031, 12, 30), date(2032, 3, 1)),
        (date(2032, 2, 19), date(2032, 3, 1)),
        (date(2032, 2, 20), date(2032, 3, 1)),
        (date(2032, 2, 21), date(2032, 3, 2)),
        (date(2031, 11, 20), date(2031, 11, 30)),
    ],
)
def test_a_plant_that_rests_waits_for_march(last, expected):
    assert due_date(Plant("cactus", 10, last, rests=True), date(2032, 1, 15)) == expected


def test_a_resting_plant_that_was_never_watered_waits_too():
    assert due_date(Plant("cactus", 10, rests=True), date(2031, 12, 31)) == date(2032, 3, 1)
    assert due([Plant("cactus", 10, rests=True)], date(2031, 12, 31)) == []


def test_what_is_due_comes_in_order_of_need():
    plants = [
        Plant("palm", 5, date(2031, 6, 5)),
        Plant("Aloe", 2, date(2031, 6, 1)),
        Plant("ivy", 7, date(2031, 6, 9)),
        Plant("moss", 1),
        Plant("fern", 9, date(2031, 6, 1)),
        Plant("Bonsai", 4),
        Plant("basil", 1, date(2031, 6, 2)),
    ]
    assert due(plants, TODAY) == ["Bonsai", "moss", "Aloe", "basil", "fern", "palm"]


def test_the_next_visit_is_never_in_the_past():
    late, soon = Plant("late", 1, date(2031, 1, 1)), Plant("soon", 4, date(2031, 6, 9))
    assert next_visit([soon, late], TODAY) == TODAY
    assert next_visit([soon, Plant("later", 9, TODAY)], TODAY) == date(2031, 6, 13)
    assert next_visit([], TODAY) is None


def test_watering_makes_a_new_list():
    plants = [Plant("a", 2, date(2031, 6, 1)), Plant("b", 3), Plant("c", 4)]
    assert water(plants, ["b", "a"], TODAY) == [Plant("a", 2, TODAY), Plant("b", 3, TODAY), Plant("c", 4)]
    assert plants == [Plant("a", 2, date(2031, 6, 1)), Plant("b", 3), Plant("c", 4)]


def test_watering_what_is_not_there_is_a_mistake():
    with pytest.raises(KeyError) as caught:
        water([Plant("a", 2)], ["a", "rose"], TODAY)
    assert caught.value.args == ("rose",)
