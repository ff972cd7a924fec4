"""Markdown that untrusted text cannot break out of, as a real renderer sees it."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bakeoff.report.blocks import Block, BulletList, Code, Quote, columns, heading, paragraph
from bakeoff.report.blocks import Table as Table
from bakeoff.report.render.markdown import MAX_COMMENT_LENGTH, MAX_QUOTE_LENGTH, code_span, plain, to_markdown

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a | b | c",
    "a \\| b",
    "a \\\\| b",
    "`code` ``more`` ```fence```",
    "`",
    "````\n# heading",
    "@octocat please look",
    "[click](javascript:alert(1))",
    "![x](https://evil.example/x.png)",
    "https://evil.example and www.evil.example",
    "fixes #1, GH-2, owner/repo#3",
    "</details><h1>owned</h1>",
    "| --- |\n| x |",
    "\x1b[31mred\x1b[0m",
    "line\r\nbreak\u2028other",
    "\\",
    "   ",
    "&lt;b&gt;",
]


class Tags(HTMLParser):
    """Collect what a browser would be given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.code: list[str] = []
        self.outside: list[str] = []
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag in ("code", "pre"):
            self._depth += 1
            if tag == "code":
                self.code.append("")

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag in ("code", "pre")

    def handle_data(self, data: str) -> None:
        if self._depth:
            if self.code:
                self.code[-1] += data
        else:
            self.outside.append(data)


def rendered(markdown: str) -> Tags:
    tags = Tags()
    tags.feed(MarkdownIt("gfm-like").render(markdown))
    return tags


def document(text: str) -> str:
    quote = Quote(text)
    return to_markdown(
        [
            heading("Head ", quote),
            paragraph("Before ", quote, " after"),
            BulletList((("item ", quote),)),
            Table(columns("a", "b>"), ((quote, "ours"), ("ours", quote))),
            Code("\n".join(f"+{line}" for line in text.splitlines() or [""]), "diff", text),
        ]
    )


ALLOWED = {"h2", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "code", "pre"}


@pytest.mark.parametrize("text", ATTACKS)
def test_an_attack_renders_as_text_in_code_and_changes_no_structure(text: str) -> None:
    tags = rendered(document(text))
    assert set(tags.seen) <= ALLOWED
    assert tags.seen.count("tr") == 3
    assert tags.seen.count("td") == 4
    assert tags.seen.count("pre") == 1
    assert "@octocat" not in "".join(tags.outside)
    assert "evil.example" not in "".join(tags.outside)


@given(st.text(max_size=80) | st.text(alphabet="`|\\<>@#[]()!*_~&\n\r -+:./hwt", max_size=60))
def test_no_text_at_all_changes_the_structure(text: str) -> None:
    tags = rendered(document(text))
    assert set(tags.seen) <= ALLOWED
    assert (tags.seen.count("tr"), tags.seen.count("td"), tags.seen.count("pre")) == (3, 4, 1)


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40))
def test_a_code_span_shows_exactly_the_text(text: str) -> None:
    assert rendered(code_span(text)).code == [text]


def test_plain_words_are_escaped_and_mention_nobody() -> None:
    assert re.search(r"@\w", plain("ask @someone")) is None
    assert set(rendered(plain("a *b* _c_ <i>d</i> [e](f) https://g.example www.h.example")).seen) == {"p"}


def test_long_quotes_are_cut() -> None:
    assert len(code_span("x" * 10_000_000)) < MAX_QUOTE_LENGTH + 10


def test_what_a_comment_has_no_room_for_is_left_out_and_counted() -> None:
    table = Table(columns("a", "b>"), tuple((Quote(f"row {number} " + "x" * 250), "1") for number in range(300)))
    lines = tuple(f"+{'y' * 200}" for _ in range(60))
    text = to_markdown(
        [heading("Head"), paragraph("first"), table, heading("More"), Code("\n".join(lines), "diff", "d")]
    )
    assert MAX_COMMENT_LENGTH * 0.98 < len(text) <= MAX_COMMENT_LENGTH
    shown = rendered(text).seen.count("tr") - 1
    assert text.endswith(f"Left out to stay below 65,000 characters: table rows ({300 - shown}), texts (1).\n")
    assert "## More" not in text, "nothing would stand under it"


@pytest.mark.parametrize("room", [600, 700, 1000, 2000, 5000, 20_000])
def test_a_shorter_text_still_has_its_structure(room: int) -> None:
    quote = Quote("z" * 280)
    blocks: list[Block] = [
        heading("H"),
        BulletList((("item ", quote),) * 5),
        heading("T"),
        Table(columns("a"), ((quote,),) * 9),
    ]
    text = to_markdown(blocks, room)
    assert len(text) <= room
    assert set(rendered(text).seen) <= ALLOWED
    assert ("Left out" in text) == (room < 5000)
