"""Texts of a server that are aimed at the model and not at describing a tool."""

import re
import unicodedata
from collections.abc import Iterator

from pydantic import JsonValue

from bakeoff.doors.mcp_suite.lint.rules import Finding
from bakeoff.mcp import ServerTool
from bakeoff.mcp.words import quoted

_SEEN = 20_000  # characters of one text
_AROUND = 30
_JOINERS = "\u200c\u200d\ufe0f"  # parts of scripts and of emoji, between other characters

_ATTACKS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(ignore|disregard|forget|override)\b.{0,40}\b(previous|prior|above|earlier|other|system|all)\b.{0,30}"
        r"\b(instruction|prompt|rule|message|direction|guideline)s?",
        r"\b(do not|don't|never|without)\b.{0,30}\b(tell|mention|inform|reveal|show|notify)"
        r"\w*\b.{0,40}\b(user|human|person|anyone)",
        r"</?\s*(important|system|instructions?|secret|admin|assistant|hidden)\s*>",
        r"\[/?(INST|SYSTEM)\]|<\|(im_start|im_end|system|endoftext)\|>",
        r"\byou are now\b|\bnew (system )?instructions?\b|\bsystem prompt\b",
        r"\b(always|must|first)\b.{0,30}\b(call|use|invoke|run)\b.{0,20}\bthis tool\b.{0,30}"
        r"\b(before|first|instead of)\b.{0,30}\b(any|every|all|other)",
        r"\b(read|open|cat|load|include|send|pass|attach)\b.{0,60}(~/|/etc/(passwd|shadow)|\.ssh|id_rsa|\.env\b|\.aws"
        r"|credentials?\b|api[ _-]?keys?\b|private key|mcp\.json)",
        r"\b(send|post|forward|upload|exfiltrate|e-?mail|bcc)\b.{0,60}\b(conversation|chat history|messages|context|"
        r"contents? of)\b.{0,60}\b(to|at)\b",
    )
)


def hostile_findings(tool: ServerTool) -> Iterator[Finding]:
    """One finding for each text and kind."""
    for place, text in _texts(tool):
        hidden = [char for at, char in enumerate(text) if _is_hidden(text, at)]
        if hidden:
            names = ", ".join(dict.fromkeys(f"U+{ord(char):04X}" for char in hidden[:50]))[:80]
            what = f"it holds {len(hidden)} invisible characters ({names})"
            yield _of(tool, "hostile-invisible", place, what)
        # What is hidden inside a word must not hide the word.
        plain = " ".join("".join(char for at, char in enumerate(text) if not _is_hidden(text, at)).split())
        attack = next((found for pattern in _ATTACKS if (found := pattern.search(plain))), None)
        if attack is not None:
            said = plain[max(0, attack.start() - _AROUND) : attack.end() + _AROUND]
            yield _of(tool, "hostile-instructions", place, f"it says {quoted(said, 160)}")


def _texts(tool: ServerTool) -> Iterator[tuple[str, str]]:
    yield "", tool.title
    yield "", tool.description
    for place, text in _inside(tool.input_schema, ""):
        yield place, text
    for place, text in _inside(tool.output_schema or {}, "result"):
        yield place, text


def _inside(value: JsonValue, place: str) -> Iterator[tuple[str, str]]:
    """All texts of a schema, keys too: any of them reaches the model."""
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


def _is_hidden(text: str, at: int) -> bool:
    char = text[at]
    if char in "\n\r\t" or char.isprintable():
        return char in "\u3164\u115f\u1160\u2800\u00ad"  # printable, and blank
    if char in _JOINERS and 0 < at < len(text) - 1:
        return text[at - 1].isascii() or text[at + 1].isascii()
    return unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs", "Cn")


def _of(tool: ServerTool, rule: str, place: str, what: str) -> Finding:
    shown = place.replace("properties.", "").replace(".items", "[]").removesuffix(".description")
    shown = "" if shown in ("description", "title") else shown
    return Finding(rule=rule, server=tool.server, tool=tool.name, parameter=shown, what=what)
