"""The name of the test that must fail."""

import json

from bakeoff.toolchains.canary import name_like_tests_in, replace_surrogates

SUITE = "test('counts every click', () => {}); it.only(\"shows the double\", () => {}); test.each([1])('has %s', f);"


def test_a_canarys_name_is_made_of_the_suites_own_words_and_is_none_of_its_names() -> None:
    names = {name_like_tests_in(SUITE) for _ in range(50)}
    words = {"counts", "every", "click", "shows", "the", "double"}
    assert len(names) > 1
    for name in names:
        assert name not in SUITE
        assert set(name.split()) <= words


def test_a_suite_of_one_test_has_a_canary_of_another_name() -> None:
    assert name_like_tests_in("test('a', f)").startswith("a")
    assert name_like_tests_in("test('a', f)") not in "test('a', f)"
    assert name_like_tests_in("")


def test_half_a_character_in_an_answer_is_replaced_and_what_is_no_json_is_left() -> None:
    assert json.loads(replace_surrogates(b'{"a": "x\\ud83d"}')) == {"a": "x?"}
    assert replace_surrogates(b"{") == b"{"
