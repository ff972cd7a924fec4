import pytest
from subtitle_wrap import clusters, width, wrap

E_ACUTE = "e\u0301"
FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f466"
THUMB = "\U0001f44d\U0001f3fd"
JAPAN, BRAZIL = "\U0001f1ef\U0001f1f5", "\U0001f1e7\U0001f1f7"
HEART = "\u2764\ufe0f"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (f"a{E_ACUTE}b", ["a", E_ACUTE, "b"]),
        (f"{FAMILY}{THUMB}x", [FAMILY, THUMB, "x"]),
        (f"{JAPAN}{BRAZIL}\U0001f1ef", [JAPAN, BRAZIL, "\U0001f1ef"]),
        (f"नि林{HEART}", ["नि", "林", HEART]),
        ("\u0301a\u200d", ["\u0301", "a\u200d"]),
        ("a\u200db\u0301\u200dcd", ["a\u200db\u0301\u200dc", "d"]),
    ],
)
def test_clusters_are_what_readers_see(text, expected):
    assert clusters(text) == expected


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("plain", 5),
        (f"caf{E_ACUTE}", 4),
        ("林檎", 4),
        ("Ｆ", 2),
        ("ｶ", 1),
        (FAMILY + THUMB, 4),
        (JAPAN + BRAZIL, 4),
        ("\U0001f1ef", 1),
        (HEART, 2),
        ("\u2764", 1),
        ("\u0301", 0),
        ("a\u00adb\u200bc\x07", 3),
    ],
)
def test_width_is_in_columns(text, columns):
    assert width(text) == columns


def test_words_fill_lines():
    assert wrap("the quick brown fox jumps", 10) == ["the quick", "brown fox", "jumps"]
    assert wrap("the quick", 9) == ["the quick"]


def test_lines_of_the_text_stay_lines():
    assert wrap("one two\n\nthree\n", 5) == ["one", "two", "", "three", ""]
    assert wrap("", 5) == [""]
    assert wrap("   \n a", 5) == ["", "a"]


def test_spaces_at_the_ends_are_dropped_and_need_no_room():
    assert wrap("  abcde   fg  h ", 5) == ["abcde", "fg  h"]
    assert wrap("abcde     ", 5) == ["abcde"]
    assert wrap("a    bcde", 5) == ["a", "bcde"]


def test_other_spaces_do_not_break():
    assert wrap("ab c\u00a0d ef", 5) == ["ab", "c\u00a0d", "ef"]


def test_a_long_word_is_cut_between_clusters():
    assert wrap("abcdefgh ij", 3) == ["abc", "def", "gh", "ij"]
    assert wrap(f"x {E_ACUTE * 5}", 3) == ["x", E_ACUTE * 3, E_ACUTE * 2]
    assert wrap("a\u200db\u200dc" * 3, 2) == ["a\u200db\u200dc" * 2, "a\u200db\u200dc"]


def test_wide_clusters_break_anywhere():
    assert wrap("林檎林檎林", 5) == ["林檎", "林檎", "林"]
    assert wrap("abc林檎def", 5) == ["abc林", "檎def"]
    assert wrap(f"{FAMILY}{JAPAN}{HEART}ok", 4) == [f"{FAMILY}{JAPAN}", f"{HEART}ok"]


def test_no_line_begins_with_what_closes():
    assert wrap("林檎林。檎", 6) == ["林檎", "林。檎"]
    assert wrap("林檎林」。檎", 6) == ["林檎", "林」。", "檎"]
    assert wrap("abc林！", 5) == ["abc", "林！"]


def test_no_line_ends_with_what_opens():
    assert wrap("林檎「林」檎", 6) == ["林檎", "「林」", "檎"]
    assert wrap("林（「檎", 6) == ["林", "（「檎"]


def test_where_there_is_a_space_it_breaks_all_the_same():
    assert wrap("林檎林 。檎", 6) == ["林檎林", "。檎"]


def test_when_nothing_is_allowed_it_is_cut():
    assert wrap("林。。。檎", 4) == ["林。", "。。", "檎"]
    assert wrap("「「「林", 4) == ["「「", "「林"]


def test_soft_hyphens_show_only_where_a_line_breaks():
    assert wrap("sub\u00adti\u00adtle", 10) == ["subtitle"]
    assert wrap("sub\u00adti\u00adtle", 6) == ["subti-", "tle"]
    assert wrap("sub\u00adti\u00adtle", 5) == ["sub-", "title"]
    assert wrap("a sub\u00adti\u00adtle", 4) == ["a", "sub-", "ti-", "tle"]
    assert wrap("a sub\u00adtitle", 3) == ["a", "sub", "tit", "le"]


@pytest.mark.parametrize("columns", [1, 0, -3])
def test_there_must_be_room_for_a_wide_cluster(columns):
    with pytest.raises(ValueError):
        wrap("a", columns)


@pytest.mark.parametrize("columns", range(2, 12))
def test_no_line_is_too_wide_and_nothing_is_lost(columns):
    text = f"Caf{E_ACUTE} 林檎（{FAMILY}）を、{JAPAN}{BRAZIL} extra\u00adordinary「一二」 {THUMB}{HEART}!"
    lines = wrap(text, columns)
    assert all(0 < width(line) <= columns for line in lines)
    shown = "".join(lines).replace(" ", "").replace("-", "")
    assert shown == text.replace(" ", "").replace("\u00ad", "")
