"""Word a request for a call from the phrases of `wording.toml`, without revealing the tool."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import available_timezones

from pydantic import JsonValue

from bakeoff._kernel.text import visible
from bakeoff.mcp import ServerTool

LENGTH = 4
"""The number of consecutive words that a prompt must share with a description to reveal the tool."""

_BETWEEN = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


def name_words(name: str) -> list[str]:
    """Return the words of a name such as `set_timer`, `setTimer` or `set-timer`, in lower case."""
    return [word.lower() for word in _BETWEEN.split(name) if word]


def grams(text: str) -> set[tuple[str, ...]]:
    """Return every sequence of `LENGTH` words in a text."""
    words = re.findall(r"[a-z0-9]+", text.casefold())
    return {tuple(words[at : at + LENGTH]) for at in range(len(words) - LENGTH + 1)}


def leaks(prompt: str, tool: ServerTool, values: Mapping[str, JsonValue]) -> list[str]:
    """Return a sentence for each thing that a prompt reveals. The values themselves may appear."""
    own = prompt
    for value in sorted(_texts(values.values()), key=len, reverse=True):
        own = own.replace(value, " \N{BULLET} ")
    found = [f"shares {' '.join(gram)!r} with the description" for gram in sorted(grams(own) & grams(tool.description))]
    if len(name_words(tool.name)) > 1 and spells(own, tool.name):
        found.append(f"spells the name {tool.name!r}")
    return found + [
        f"spells the parameter {name!r}" for name in values if len(name_words(name)) > 1 and spells(own, name)
    ]


def spells(prompt: str, name: str) -> bool:
    """Return True if a prompt contains a name, or its words in sequence."""
    words = " ".join(name_words(name))
    said = " ".join(re.findall(r"[a-z0-9]+", prompt.casefold()))
    return name.casefold() in re.findall(r"[\w-]+", prompt.casefold()) or (bool(words) and f" {words} " in f" {said} ")


def _texts(values: Iterable[JsonValue]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str) and value:
            yield value
        elif isinstance(value, dict):
            yield from _texts(value.values())
        elif isinstance(value, list):
            yield from _texts(value)


_Entry = TypeVar("_Entry")
_QUESTION = re.compile(r"(what|which|where|who|when|how|is|do (you|we|i)|have i|can|could|will)\b", re.IGNORECASE)
_PLACE = re.compile(r"\{([a-z_]+)\}")  # of a parameter's value in an opening
_PLAIN = re.compile(r"[\w./:@#*%+&=?~-]+")
_MAX_PART_LENGTH = 300


@cache
def wording() -> Mapping[str, Any]:
    """Return the contents of `wording.toml`."""
    return tomllib.loads(Path(__file__).with_name("wording.toml").read_text(encoding="utf-8"))


@cache
def group(name: str) -> frozenset[str]:
    """Return one of the named groups of words."""
    return frozenset(wording()["groups"][name].split())


def entry_for(name: str, table: Mapping[str, _Entry]) -> _Entry | None:
    """Return the table's entry for the longest ending, in whole words, of a parameter's name."""
    words = name_words(name)
    return next((table[key] for at in range(len(words)) if (key := " ".join(words[at:])) in table), None)


def is_known(name: str, schema: JsonValue) -> bool:
    """Return True if there is a natural phrase for a parameter."""
    if isinstance(schema, dict) and schema.get("type") == "boolean":
        return " ".join(name_words(name)) in wording()["switches"]
    return entry_for(name, wording()["phrases"]) is not None


def request_for(
    tool: ServerTool, values: Mapping[str, JsonValue], prefixes: frozenset[str], taken: set[str], *, rest: bool = False
) -> str:
    """Return a request that reveals only the values and, if possible, is not in `taken`.

    `prefixes` are words with which the names of a server's tools begin. With `rest`, the model may
    choose further parameters of the call.
    """
    known = {"_".join(name_words(name)) for name in values}
    openings = [each for each in _openings(tool, values, prefixes) if known.issuperset(_PLACE.findall(each[0]))]
    candidates = [_assembled(*opening, values, tool) for opening in openings]
    if rest:
        candidates = [f"{each} Choose the rest yourself." for each in candidates]
    silent = [each for each in candidates if not leaks(each, tool, values)] or candidates
    return next((each for each in silent if each not in taken), silent[0])


def is_vague(tool: ServerTool, names: Iterable[str], prefixes: frozenset[str]) -> bool:
    """Tell whether these parameters alone make no sensible request, such as "change 12"."""
    words = [word for word in name_words(tool.name) if word not in prefixes]
    opening = _verb_and_noun(words, tool.description)[0]
    given = [name_words(name) for name in names]
    if opening in group("needs-more"):
        return all(name and name[-1] in group("identifying") for name in given)
    return not given and opening in group("needs-a-value")


def common_prefixes(tools: Sequence[ServerTool]) -> frozenset[str]:
    """Return the words that name the server rather than a tool, such as `git` in `git_status`."""
    found: set[str] = set()
    for server in {tool.server for tool in tools}:
        names = [words for tool in tools if tool.server == server and (words := name_words(tool.name))]
        first = [words[0] for words in names]
        found |= {word for word in first if first.count(word) > 1 and 5 * first.count(word) >= 2 * len(first)}
        if len(names) > 1:
            found |= set.intersection(*map(set, names))
    return frozenset(found - set(_verbs()) - set(wording()["phrases"]))


@cache
def _verbs() -> Mapping[str, str]:
    """Return the opening of a request for each verb."""
    return {word: opening for opening, listed in wording()["verbs"].items() for word in listed.split()}


def _openings(
    tool: ServerTool, values: Mapping[str, JsonValue], prefixes: frozenset[str]
) -> Iterator[tuple[str, bool]]:
    """Yield possible openings of a request. True means that a name can follow its last noun."""
    every = name_words(tool.name)
    words = [word for word in every if word not in prefixes] or every
    yield from ((template, False) for template in wording()["names"].get(" ".join(words), ()))
    opening, verb, noun = _verb_and_noun(words, tool.description)
    subject = " ".join(word for word in every if word in prefixes) if opening in group("of-the-server") else ""
    kinds = (name_words(name) for name, value in values.items() if isinstance(value, str))
    kind = next((f"{{{'_'.join(name)}}}" for name in kinds if name[-1:] in (["type"], ["kind"])), "")
    subject = subject or kind
    forms = {**_forms(noun or subject), "verb": verb}
    for template in (*wording()["openings"][opening], *wording()["openings"]["need"]):
        filled = template
        for name, form in forms.items():
            filled = filled.replace(f"{{{name}}}", form)
        yield f"{filled[:1].upper()}{filled[1:]}", template.endswith(("{the}", "{a}")) and bool(noun or subject)


def _verb_and_noun(words: Sequence[str], description: str) -> tuple[str, str, str]:
    """Return the opening, the verb and the noun of a name. A weak verb counts as a noun if there is another verb."""
    verbs = _verbs()
    places = [at for at, word in enumerate(words) if word in verbs]
    strong = [at for at in places if words[at] not in group("weak-verbs")] or places
    first = (name_words(description[:60]) or [""])[0]
    stems = [first, first.removesuffix("s"), first.removesuffix("es")]
    said = next((at for at, word in enumerate(words) if word in stems), None)
    if said is not None and words[said] not in verbs and 0 not in places:
        at, opening = said, "do"
    elif strong:
        at = 0 if 0 in strong else strong[-1]
        opening = verbs[words[at]]
    else:
        at, opening = -1, next((verbs[stem] for stem in stems if stem in verbs), "need")
    rest = [word for place, word in enumerate(words) if place != at and word not in group("articles")]
    if opening == "add" and rest[:1] in (["to"], ["on"], ["into"]):
        opening = "add-to"
    while rest and rest[0] in group("joiners"):
        rest = rest[2:] if rest[0] in ("or", "and") else rest[1:]
    nouns: Mapping[str, str] = wording()["nouns"]
    return opening, words[at] if at >= 0 else "", " ".join(nouns.get(word, word) for word in rest)


def _forms(noun: str) -> dict[str, str]:
    """Return a noun with its articles, and its plural. The head of a noun is the word before `with`, `of` or `that`."""
    noun = visible(noun, 80).replace("${", "$ {")
    if not noun:
        return {"the": "it", "a": "something", "many": "things", "noun": "it"}
    head, joiner, tail = next(
        (
            noun.partition(f" {word} ")
            for word in ("with", "of", "that", "for", "from", "to", "in")
            if f" {word} " in noun
        ),
        (noun, "", ""),
    )
    bare = noun.startswith("everything")
    counted = head.split()[-1] not in group("not-counted")
    plural = (head.endswith("s") and not head.endswith(("ss", "us"))) or not counted
    article = "an" if noun[0] in "aeiou" else "a"
    many = (
        head
        if plural or bare or head.endswith("}")
        else f"{head[:-1]}ies"
        if re.search("[^aeiou]y$", head)
        else f"{head}s"
    )
    the = noun if bare else f"the {noun}"
    return {
        "the": the,
        "a": f"some {noun}" if plural else f"{article} {noun}",
        "many": f"{many}{joiner}{tail}",
        "noun": noun,
    }


def _said(values: Mapping[str, JsonValue], own: Sequence[str] = ()) -> list[str]:
    """Return a phrase for each value. `own` are the words of the tool's name, which phrases do not repeat."""
    rest = dict(values)
    found: list[str] = []
    for names, phrase in wording()["together"].items():
        wanted = names.split(", ")
        having = {" ".join(name_words(name)): name for name in rest}
        if all(name in having for name in wanted):
            said = phrase.format(*(shown_value(rest.pop(having[name])) for name in wanted))
            found.append(
                f"^{said.removeprefix('in ')}" if names == "owner, repo" and own[-1:] == ["repository"] else said
            )
    return found + [said for name, value in rest.items() if (said := _phrase(name, value, own))]


def _phrase(name: str, value: JsonValue, own: Sequence[str]) -> str:
    """Return how a person says one value.

    The first character says where the phrase goes: `^` beside the noun, `|` after the sentence, `:` at its end.
    """
    words = name_words(name)
    if isinstance(value, bool):
        said = wording()["switches"].get(" ".join(words))
        if said is None:
            return f"|{' '.join(words).capitalize()}: {shown_value(value)}"
        return str(said) if value else ""
    shown = shown_value(value)
    if not words:
        return f"with {shown}"
    if words[-1] == "time" and isinstance(value, int | float):
        return f"for {shown} seconds"
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value)):
        return shown if re.match("(about|called|from|at|for) ", shown) else f": {shown}"
    if words[-1] in group("stored") and own and own[-1] in group("stored") and len(words) <= 2:
        return f"^{shown}"
    if len(words) > 1 and words[-1] in group("stems") and " ".join(words) not in wording()["phrases"]:
        number = f"number {shown}" if words[-1] in ("number", "index") else shown
        if words[-2] not in own:
            return f"{'on' if words[-2] in group('shown') else 'of'} {' '.join(words[:-1])} {shown}"
        return f"^{shown}" if own[-1] in (words[-2], "request") else f"of {number}"
    template = entry_for(name, wording()["phrases"])
    if template is not None:
        return str(template).replace("{}", shown)
    return f": {shown}" if isinstance(value, list) else f"|{' '.join(words).capitalize()}: {shown}"


def shown_value(value: JsonValue) -> str:
    """Return a value as a person would say it: a time zone by its city, texts in quotes."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        phrases = [_phrase(name, each, ()).lstrip("^") for name, each in value.items() if _is_said(name, each)]
        # Anything else is said as it is written: people paste such data.
        together = set(map(str, value)) == {"latitude", "longitude"}
        said = _said(value) if together else phrases
        return _joined(said) if together or len(phrases) == len(value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        parts = [shown_value(each) for each in value]
        return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts) or "nothing"
    if not isinstance(value, str):
        return json.dumps(value)
    if "/" in value and value in available_timezones():
        return value.rpartition("/")[2].replace("_", " ")
    if value in wording()["said"]:
        return str(wording()["said"][value])
    if _PLAIN.fullmatch(value):
        return value
    return f"'{value}'" if "'" not in value else f"“{value}”"


def _is_said(name: str, value: JsonValue) -> bool:
    """Return True if a part of an object can be put into words: a simple value that has a phrase."""
    simple = not isinstance(value, dict | bool) and not (
        isinstance(value, list) and any(isinstance(each, dict | list) for each in value)
    )
    phrase = entry_for(name, wording()["phrases"])
    return simple and phrase is not None and not phrase.startswith("|")


def _joined(phrases: Sequence[str]) -> str:
    """Join phrases: those beside the noun first, those after a colon last."""
    first = [phrase[1:] for phrase in phrases if phrase.startswith("^")]
    first += [phrase for phrase in phrases if not phrase.startswith((":", "^"))]
    last = [phrase.removeprefix(": ") for phrase in phrases if phrase.startswith(":")]
    return " ".join(first) + (f": {' and '.join(last)}" if last else "")


def _assembled(opening: str, beside: bool, values: Mapping[str, JsonValue], tool: ServerTool) -> str:
    """Return a request: the opening, the phrases of values that it does not contain yet, and the punctuation."""
    rest, text = dict(values), opening
    for name in values:
        place = f"{{{'_'.join(name_words(name))}}}"
        if place in text:
            text = text.replace(place, shown_value(rest.pop(name)))
    said = _said(rest, name_words(tool.name))
    after = [f" {phrase[1:]}." for phrase in said if phrase.startswith("|")]
    said = [phrase if beside else phrase.replace("^", "in ", 1) for phrase in said]
    inside = _joined([phrase for phrase in said if not phrase.startswith("|")])
    text = text.replace("{}", inside, 1) if "{}" in text else f"{text} {inside}"
    text = " ".join(text.split()).replace(" :", ":").replace(" ,", ",").rstrip(":,. ")
    whole = f"{text}{'?' if _QUESTION.match(text) else '.'}{''.join(after)}"
    return visible(whole, 3 * _MAX_PART_LENGTH).replace("${", "$ {")


def negatives(tools: Sequence[ServerTool], known: Sequence[JsonValue]) -> Iterator[str]:
    """Yield requests that fit no tool: first one about a value that a tool knows, then others."""
    text = " ".join(chain.from_iterable((tool.name, tool.description) for tool in tools))
    used = set(name_words(text))
    start = sum(map(ord, text))

    def fitting(kind: str) -> list[str]:
        listed = wording()[kind]
        turned = [listed[(start + at) % len(listed)] for at in range(len(listed))]
        return [each["prompt"] for each in turned if used.isdisjoint(each["words"].split())]

    things = [value for value in known if isinstance(value, str) and re.search(r"[a-z]\.[a-z]{2,4}$|[a-z]/", value)]
    if things and (near := fitting("near")):
        yield near[0].replace("{}", shown_value(things[0]))
    yield from fitting("negatives")
