import math

import pytest
from solution import ExpressionError, evaluate


def position_of_error(text, variables=None):
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, variables)
    assert isinstance(caught.value, ValueError)
    return caught.value.position


def test_numbers_are_read_in_every_form():
    cases = [("12", 12), (" 1.5\t", 1.5), (".5", 0.5), ("2.", 2.0), ("1e3", 1000.0), ("1.5E-3", 0.0015), ("(7)", 7)]
    for text, value in cases:
        assert evaluate(text) == value, text


def test_operators_group_as_described():
    cases = [
        ("1 + 2 * 3", 7),
        ("10 - 4 - 3", 3),
        ("100 / 5 / 2", 10),
        ("7 - 2 % 4 * 3", 1),
        ("-7 % 3", 2),
        ("-2^2", -4),
        ("2^-1", 0.5),
        ("2^3^2", 512),
        ("2^-2^2", 0.0625),
        ("(1 + 2) * -3", -9),
        ("--3 - +-4", 7),
        ("2*-3", -6),
        ("2^64 + 1", 18446744073709551617),
        ("1^10000", 1),
        ("1\n+\r\n1", 2),
    ]
    for text, value in cases:
        assert evaluate(text) == value, text


def test_names_are_variables_or_functions():
    variables = {"x": 3, "_y1": 0.5, "min": 9}
    assert evaluate("x * _y1 + min", variables) == 10.5
    assert evaluate("min (4, x, 8) + max(1)", variables) == 4
    assert evaluate("sqrt(abs(-16)) ^ 2") == 16
    assert evaluate("max(1 + 1, min(5, 2 * 3), -x)", {"x": 1}) == 5


def test_wrong_syntax_is_found_where_it_is():
    cases = [
        ("", 0),
        ("  ", 2),
        ("1 +", 3),
        ("(1 + 2", 6),
        ("max(1, ", 7),
        ("1 2", 2),
        ("x y", 2),
        ("1 + * 2", 4),
        ("(1 + 2))", 7),
        ("()", 1),
        ("max(1,)", 6),
        ("1, 2", 1),
        ("3 $ 4", 2),
        ("1 + é", 4),
        ("1 + ²", 4),
        ("1.2.3", 3),
        ("2e", 1),
        ("nope + )", 7),
        ("1/0 + (", 7),
    ]
    for text, position in cases:
        assert position_of_error(text) == position, text


def test_what_cannot_be_evaluated_is_found_in_order():
    cases = [
        ("1 + nope", 4),
        ("x(2)", 0),
        ("1 + sin (2)", 4),
        ("abs()", 0),
        ("2 * abs(1, 2)", 4),
        ("min()", 0),
        ("abs(nope, nope)", 0),
        ("sine(nope)", 0),
        ("nope / (1 / 0)", 0),
        ("1 + 2 / 0", 6),
        ("5 % (1 - 1)", 2),
        ("0 ^ -1", 2),
        ("(0 - 8) ^ 0.5", 8),
        ("10.0 ^ 400", 5),
        ("2 ^ 3 ^ 99999", 6),
        ("1 ^ 10001", 2),
        ("3 + sqrt(-4)", 4),
        ("(1 / 0) / 0", 3),
    ]
    for text, position in cases:
        assert position_of_error(text, {"x": 1}) == position, text


def test_a_result_is_a_plain_number():
    for text in ("1 / 4", "2 ^ 0.5", "sqrt(2)", "7 % 2"):
        assert isinstance(evaluate(text), int | float)
    assert math.isclose(evaluate("2 ^ 0.5"), math.sqrt(2))


def test_deep_nesting_is_fine():
    deep = 150
    assert evaluate("(" * deep + "1" + ")" * deep) == 1
    assert evaluate("-" * deep + "1") == 1
    assert position_of_error("(" * deep) == deep
