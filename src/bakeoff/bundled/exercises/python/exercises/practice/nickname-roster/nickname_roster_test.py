import pytest
from nickname_roster import short_names


def test_a_given_name_is_enough_if_nobody_shares_it():
    assert short_names(["Ann Lee", "Bob Stone", "Annabel Lee"]) == ["Ann", "Bob", "Annabel"]


def test_nobody_needs_no_names():
    assert short_names([]) == []


def test_those_who_share_a_given_name_get_an_initial():
    assert short_names(["Ann Lee", "Bob Stone", "Ann Moss"]) == ["Ann L.", "Bob", "Ann M."]


def test_each_gets_as_much_as_it_takes_and_no_more():
    assert short_names(["Ann Lee", "Ann Lopez", "Ann Moss", "Ann Leonard"]) == [
        "Ann Lee",
        "Ann Lo.",
        "Ann M.",
        "Ann Leo.",
    ]


def test_a_family_name_that_is_written_in_full_has_no_dot():
    assert short_names(["Ann Li", "Ann Lin", "Ann Lo"]) == ["Ann Li", "Ann Lin", "Ann Lo"]


def test_only_the_last_word_is_the_family_name():
    assert short_names(["Ann Maria van Dyck", "Ann Zoe Lee", "Cher"]) == ["Ann D.", "Ann L.", "Cher"]


def test_somebody_without_a_family_name_keeps_the_plain_name():
    assert short_names(["Ann", "Ann Lee"]) == ["Ann", "Ann L."]


def test_case_and_accents_tell_nobody_apart_but_are_kept():
    assert short_names(["Zoë Ólafs", "zoe Oberg", "ZOE Strauß"]) == ["Zoë Ól.", "zoe Ob.", "ZOE S."]


def test_an_accent_makes_no_difference_however_it_is_written():
    assert short_names(["Zoe\u0308 Lee", "Zo\u00eb Moss"]) == ["Zo\u00eb L.", "Zo\u00eb M."]


def test_those_who_cannot_be_told_apart_are_numbered_with_their_whole_family_name():
    assert short_names(["Ann Lee", "Bob Stone", "ann lée", "Ann Moss"]) == ["Ann Lee 1", "Bob", "ann lée 2", "Ann M."]
    assert short_names(["Ann", "Ann"]) == ["Ann 1", "Ann 2"]


def test_middle_names_tell_nobody_apart():
    assert short_names(["Ann Maria Lee", "Ann Zoe Lee"]) == ["Ann Lee 1", "Ann Lee 2"]


def test_sharp_s_is_two_letters():
    assert short_names(["Jan Strauß", "Jan Strauss"]) == ["Jan Strauß 1", "Jan Strauss 2"]


def test_outer_and_double_spaces_do_not_count():
    assert short_names(["  Ann   Lee ", "Ann\tMoss"]) == ["Ann L.", "Ann M."]


@pytest.mark.parametrize("name", ["", "  "])
def test_a_name_cannot_be_empty(name):
    with pytest.raises(ValueError):
        short_names(["Ann Lee", name])
