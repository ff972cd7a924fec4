from fractions import Fraction

import pytest
from recipe_scaler import read_quantity, scale, scale_recipe, write_quantity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", Fraction(2)),
        ("3/4", Fraction(3, 4)),
        ("1 1/2", Fraction(3, 2)),
        ("0.1", Fraction(1, 10)),
        ("½", Fraction(1, 2)),
        ("1½", Fraction(3, 2)),
        ("2 ⅔", Fraction(8, 3)),
        ("⅓", Fraction(1, 3)),
        ("¼", Fraction(1, 4)),
        ("¾", Fraction(3, 4)),
        ("⅛", Fraction(1, 8)),
        ("⅜", Fraction(3, 8)),
        ("⅝", Fraction(5, 8)),
        ("⅞", Fraction(7, 8)),
    ],
)
def test_quantities_are_read(text, expected):
    assert read_quantity(text) == expected


@pytest.mark.parametrize(
    "text", ["", "a", "1/0", "-1", "1/2/3", "1 2", "½1", "1.", ".5", "1 1/2 ", "1e3", "½½", "²", "1_0"]
)
def test_anything_else_is_not_a_quantity(text):
    with pytest.raises(ValueError):
        read_quantity(text)


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        (Fraction(2), "2"),
        (Fraction(3, 4), "3/4"),
        (Fraction(9, 6), "1 1/2"),
        (Fraction(0), "0"),
        (Fraction(25, 8), "3 1/8"),
    ],
)
def test_quantities_are_written(quantity, expected):
    assert write_quantity(quantity) == expected


def test_a_line_is_scaled():
    assert scale("2 eggs", Fraction(3, 2)) == "3 eggs"
    assert scale("1½   large onions, in 2 parts", 3) == "4 1/2 large onions, in 2 parts"
    assert scale("100 g of  flour", Fraction(1, 3)) == "33 1/3 g of  flour"


def test_ranges_are_scaled_at_both_ends():
    assert scale("2-3 eggs", 2) == "4-6 eggs"
    assert scale("½ - 1 1/2 lemons", Fraction(1, 2)) == "1/4-3/4 lemons"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("salt", "salt"),
        ("a pinch of salt", "a pinch of salt"),
        ("", ""),
        ("2", "2"),
        ("1/2", "1/2"),
        ("-1 egg", "-1 egg"),
        ("2eggs", "2eggs"),
        ("2- eggs", "2- eggs"),
        ("#2 eggs", "#2 eggs"),
    ],
)
def test_a_line_without_a_quantity_stays(line, expected):
    assert scale(line, 2) == expected


@pytest.mark.parametrize(
    ("line", "factor", "expected"),
    [
        ("1 tsp salt", 2, "2 tsp salt"),
        ("1 tsp salt", 3, "1 tbsp salt"),
        ("1 tbsp oil", 4, "1/4 cup oil"),
        ("1 tbsp oil", Fraction(7, 2), "3 1/2 tbsp oil"),
        ("1 cup milk", 2, "2 cups milk"),
        ("2 cups milk", Fraction(1, 2), "1 cup milk"),
        ("1 cups", 1, "1 cup"),
        ("1 cup milk", Fraction(1, 8), "2 tbsp milk"),
        ("1 cup milk", Fraction(1, 96), "1/2 tsp milk"),
        ("6 tsp sugar", 24, "3 cups sugar"),
        ("1 tbsp oil", Fraction(1, 2), "1 1/2 tsp oil"),
    ],
)
def test_the_unit_suits_the_quantity(line, factor, expected):
    assert scale(line, factor) == expected


def test_only_a_whole_word_in_its_place_is_a_unit():
    assert scale("1 cupcake", 4) == "4 cupcake"
    assert scale("3 small cups", 2) == "6 small cups"
    assert scale("3 Tsp salt", 2) == "6 Tsp salt"
    assert scale("3 tsp. salt", 2) == "6 tsp. salt"


def test_the_ends_of_a_range_share_a_unit():
    assert scale("1-2 tbsp oil", 4) == "1/4-1/2 cup oil"
    assert scale("3-8 tbsp oil", 1) == "3-8 tbsp oil"
    assert scale("1/2-1 cup rice", 2) == "1-2 cups rice"
    assert scale("1-6 tsp salt", 1) == "1-6 tsp salt"


def test_a_recipe_is_scaled_line_by_line():
    recipe = "Dough\n  2 cups flour\n\n    1 tsp salt\n  water\n"
    assert scale_recipe(recipe, 4, 6) == "Dough\n  3 cups flour\n\n    1 1/2 tsp salt\n  water\n"
    assert scale_recipe("2 eggs", 1, 2) == "4 eggs"
    assert scale_recipe("2 eggs", 2, 1) == "1 eggs"


@pytest.mark.parametrize(("servings", "wanted"), [(0, 1), (1, 0), (-2, 2)])
def test_servings_must_make_sense(servings, wanted):
    with pytest.raises(ValueError):
        scale_recipe("2 eggs", servings, wanted)
