import pytest
from passphrase import describe, hint, passphrase, split, tags


def test_it_is_long_enough():
    assert len(passphrase(8)) >= 8


def test_it_is_not_too_long():
    assert len(passphrase(8)) < 100


def test_it_has_a_digit_and_no_space():
    phrase = passphrase(12)
    assert any(letter.isdigit() for letter in phrase)
    assert " " not in phrase


def test_the_description_names_the_length():
    assert "12" in describe(12)


def test_the_description_is_polite():
    assert describe(3).startswith("please")
    assert "longer" in describe(3)


def test_too_short_is_refused():
    with pytest.raises(ValueError, match="short"):
        passphrase(2)


def test_nonsense_is_refused():
    with pytest.raises((TypeError, ValueError)):
        passphrase("many")


@pytest.mark.parametrize("length", [0, -1, -100])
def test_no_length_is_refused(length):
    with pytest.raises(ValueError):
        passphrase(length)


@pytest.mark.parametrize("length", [4, 9, 30])
def test_every_length_is_kept(length):
    assert len(passphrase(length)) >= length


@pytest.mark.parametrize(
    "text, expected",
    [("a b", ["a", "b"]), ("", []), ("one", ["one"]), ("x  y z", ["x", "y", "z"])],
    ids=["two", "none", "one", "three"],
)
def test_words_are_split(text, expected):
    assert split(text) == expected


def test_some_hint_is_given():
    assert hint() in ("use words", "use digits", "use more")


def test_tags_have_no_order():
    assert set(tags()) == {"safe", "new"}
    assert sorted(tags()) == ["new", "safe"]
    assert isinstance(tags(), list) and len(tags()) == 2
