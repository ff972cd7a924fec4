from acronym import acronym


def test_first_letters():
    assert acronym("as soon as possible") == "ASAP"


def test_one_word():
    assert acronym("tea") == "T"
