from vowels import count_vowels


def test_small_letters():
    assert count_vowels("banana") == 3
    assert count_vowels("rhythm") == 0


def test_capital_letters():
    assert count_vowels("AUDIO") == 4
