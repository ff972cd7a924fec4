"""The summary as plain lines: the same as when it is laid out, or not at all."""

import pytest

from bakeoff.report.blocks import Block, BulletList, Column, Quote, Table, heading, paragraph
from bakeoff.report.render.text_tables import _wrapped_lines, block_lines, plain_lines

TABLE = Table(
    (Column("suite"), Column("cases", align="end"), Column("rate", align="end", drop=1), Column("why")),
    (
        (Quote("test_it"), "5,000", "100.0 %", "–"),
        (Quote("a\x1b[31mlonger name"), "7", "3.0 %", Quote("because [bold] of :smile:")),
    ),
)
NOTES = BulletList((("5 of 5 cases have a score",), ("interval: ", Quote("rule\nof three"))))


@pytest.mark.parametrize("width", [66, 80, 100, 200])
@pytest.mark.parametrize("blocks", [[TABLE], [NOTES], [TABLE, NOTES, paragraph("Worst cases:"), TABLE], []])
def test_what_fits_looks_as_if_it_had_been_wrapped_lines(blocks: list[Block], width: int) -> None:
    lines = plain_lines(blocks, width)
    assert lines == _wrapped_lines(blocks, width, coloured=False)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(paragraph("word " * 30), id="too long"),
        pytest.param(paragraph(Quote("東京")), id="wide characters"),
        pytest.param(Table(TABLE.columns, ((Quote("x" * 90), "1", "1", "1"),)), id="wide table"),
        pytest.param(heading("Evals"), id="another kind"),
    ],
)
def test_what_does_not_fit_is_wrapped_lines(block: Block) -> None:
    assert plain_lines([NOTES, block], 80) is None
    assert block_lines([NOTES, block], 80) == _wrapped_lines([NOTES, block], 80, coloured=False)


def test_titles_of_columns_are_bold_where_there_are_colours() -> None:
    (title, *_) = block_lines([TABLE], 80, coloured=True)
    assert title.startswith("\x1b[1msuite")
    assert title.endswith("\x1b[0m")
