"""Find texts of a server that give orders to the model instead of describing a tool.

Many honest descriptions look similar: "Send messages to a channel", "Do not include API keys". So a
pattern requires both an order and its object. A text that no honest description contains is an
error. A text that is only suspicious is a warning with the reason.
"""

import base64
import binascii
import codecs
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from bakeoff._kernel.text import quoted
from bakeoff.mcp import ServerTool
from bakeoff.mcp.lint import LintFinding

_SEEN = 20_000  # characters that are searched in one text
_AROUND = 30
_JOINERS = "\u200c\u200d\ufe0f"  # parts of scripts and of emoji, between other characters


@dataclass(frozen=True, slots=True)
class _Sign:
    """A kind of order to the model, and why it is suspicious."""

    rule: str
    why: str
    pattern: re.Pattern[str]


def _read_signs() -> tuple[_Sign, ...]:
    """Read the signs, and fill in the named parts of their patterns."""
    data = tomllib.loads(Path(__file__).with_name("signs.toml").read_text(encoding="utf-8"))

    def filled(pattern: str) -> str:
        return re.sub(r"<([a-z-]+)>", lambda part: filled(data["parts"][part[1]]), pattern)

    return tuple(
        _Sign(sign["rule"], sign["why"], re.compile("|".join(map(filled, sign["patterns"])), re.IGNORECASE))
        for sign in data["signs"]
    )


_SIGNS = _read_signs()
_LEET = str.maketrans("013457@$", "oieasTas".lower())
# Letters of other scripts that attackers use because they look like Latin letters.
_CONFUSABLE = str.maketrans("аАеЕоОрРсСхХуУіІјЈѕЅԁһΑΒΕΖΗΙΚΜΝΟΡΤΥΧοαεικν", "aAeEoOpPcCxXyYiIjJsSdhABEZHIKMNOPTYXoaeikv")


def hostile_findings(tool: ServerTool, others: Sequence[str] = ()) -> Iterator[LintFinding]:
    """Find hostile and suspicious texts. Yield one finding for each text and kind.

    `others` lists the tools that only other servers have.
    """
    schemas = (*_inside(tool.input_schema, ""), *_inside(tool.output_schema or {}, "result"))
    for place, text in (("", tool.title), ("", tool.description), *schemas):
        hidden = [char for at, char in enumerate(text) if _is_hidden(text, at)]
        if hidden:
            names = ", ".join(dict.fromkeys(f"U+{ord(char):04X}" for char in hidden[:50]))[:80]
            what = f"it contains {len(hidden)} invisible characters ({names})"
            yield LintFinding.of(tool, "hostile-invisible", what, _parameter(place))
        # A hidden character inside a word must not hide the word.
        plain = " ".join("".join(char for at, char in enumerate(text) if not _is_hidden(text, at)).split())
        for rule, what in _orders(plain, others):
            yield LintFinding.of(tool, rule, what, _parameter(place))
            break


def _orders(plain: str, others: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the orders to the model in a text, as rule and sentence, certain ones first."""
    for disguise, text in _readings(plain):
        for sign in _SIGNS:
            if found := sign.pattern.search(text):
                said = text[max(0, found.start() - _AROUND) : found.end() + _AROUND]
                yield sign.rule, f"it {sign.why}{disguise}: {quoted(said, 160)}"
    for name in others:
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", plain):
            yield "suspicious-instructions", f"it names the tool {quoted(name, 80)} of another server"


def _readings(plain: str) -> Iterator[tuple[str, str]]:
    """Yield a text as it is and, if different, without its disguise."""
    yield "", plain
    if " " not in plain and "_" in plain:
        yield "", plain.replace("_", " ")
    folded = unicodedata.normalize("NFKC", plain).translate(_CONFUSABLE)
    if folded != plain and re.search(r"[a-z]", folded, re.IGNORECASE):
        yield ", in letters that only look Latin", folded
    if re.search(r"\b[a-z]+[013457@$]+[a-z]", plain, re.IGNORECASE) or re.search(r"\b[013457@$]+[a-z]", plain):
        yield ", with digits for letters", plain.translate(_LEET)
    if re.search(r"(?:\b\w ){8}", plain):
        yield ", in spaced letters", re.sub(r"(?<=\b\w) (?=\w\b)", "", plain)
    if re.search(r"rot-?13", plain, re.IGNORECASE):
        yield ", in ROT13", codecs.decode(plain, "rot13")
    for found in re.findall(r"[A-Za-z0-9+/_-]{24,}={0,2}", plain)[:20]:
        with suppress(binascii.Error, ValueError):
            if re.fullmatch(r"(?:[0-9a-fA-F]{2}){12,}", found):
                yield ", encoded", bytes.fromhex(found).decode()
            else:
                padded = found.replace("-", "+").replace("_", "/") + "=" * (-len(found) % 4)
                yield ", encoded", base64.b64decode(padded).decode()


def _inside(value: JsonValue, place: str) -> Iterator[tuple[str, str]]:
    """Yield all texts of a schema including keys, since all of them reach the model."""
    if isinstance(value, str):
        yield place, value[:_SEEN]
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in ("properties", "items"):
                yield place, name[:_SEEN]
            yield from _inside(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for inner in value:
            yield from _inside(inner, place)


def _parameter(place: str) -> str:
    shown = place.replace("properties.", "").replace(".items", "[]").removesuffix(".description")
    return "" if shown in ("description", "title") else shown


def _is_hidden(text: str, at: int) -> bool:
    """Return True for invisible characters, except joiners inside words and emoji."""
    char = text[at]
    if char in "\n\r\t" or char.isprintable():
        return char in "\u3164\u115f\u1160\u2800\u00ad"  # counted as printable, but blank
    if char in _JOINERS and 0 < at < len(text) - 1:
        return text[at - 1].isascii() or text[at + 1].isascii()
    return unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs", "Cn")
