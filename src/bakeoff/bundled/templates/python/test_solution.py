from solution import initials


def test_takes_the_first_letter_of_each_word():
    assert initials("ada lovelace") == "AL"
    assert initials("Plato") == "P"


def test_takes_the_first_and_the_last_of_many_words():
    assert initials("Ada King Lovelace") == "AL"
    assert initials("Ada Augusta King Lovelace", 3) == "AAL"


def test_separates_words_by_hyphens_and_any_space():
    assert initials("  Anna-Lena   ") == "AL"


def test_has_an_answer_for_no_name():
    assert initials("") == "?"
    assert initials(" ") == "?"
