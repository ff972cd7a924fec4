"""Give every parser mutated inputs: none may end in a traceback, take seconds, or fill memory."""

import json
import logging
import multiprocessing
import random
import resource
import shutil
import signal
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.hostile.options import Options
from scripts.hostile.rows import Findings

from bakeoff.errors import BakeoffError

if TYPE_CHECKING:
    from scripts.hostile.parsers import Parser

INPUTS, SAMPLED_INPUTS = 120_000, 5_500
_HANGS_SECONDS = 5.0  # of processor time, so that a busy machine finds no more than an idle one
_MAX_MEMORY = 3 << 30
_BATCH = 125
_MAX_LENGTH = 200_000
_WORDS = (
    *(b"null", b"true", b"-1", b"1e999", b"NaN", b"0x10", b"9" * 400, b'""', b"[]", b"{}", b"\\u0000", b"\\ud800"),
    *(
        b"\x00",
        b"\xff\xfe",
        "\u202e".encode(),
        b"\r",
        b"\n\n",
        b"\t",
        b"&a *a",
        b"<<: *x",
        b"!!python/object:os.system",
        b"---\n",
    ),
    *(
        b"../../etc/passwd",
        b"/dev/zero",
        b"${HOME}",
        b"{{7*7}}",
        b"<!ENTITY",
        b"<![CDATA[",
        b"%s%n",
        b"--",
        b"'",
        b'"',
        b"\\",
        b"=",
    ),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1e308, 10**400, "", "x" * 5_000, "\ud800", "\x00", "../x", "${X}"),
    *([], {}, [[]], [None], {"": {}}),
)


class _TooLong(Exception):
    """A parser took more processor time than it may."""


def run(options: Options) -> Findings:
    """Feed the parsers, and return each distinct traceback once."""
    from scripts.hostile.parsers import parsers

    inputs = SAMPLED_INPUTS if options.sample else max(_BATCH, round(INPUTS * options.scale))
    count = len(parsers()) + 1
    tasks = [(number % count, options.seed * 1_000_003 + number) for number in range(-(-inputs // _BATCH))]
    seen: Counter[str] = Counter()
    refused = done = 0
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.jobs, maxtasksperchild=60) as pool:
        for number, (problems, accepted) in enumerate(pool.imap_unordered(_batch, tasks), 1):
            seen.update(problems)
            done, refused = done + _BATCH, refused + _BATCH - accepted
            if number % 40 == 0:
                options.say(f"  {done:,} of {inputs:,} inputs, {len(seen)} distinct problems")
    figures = {"fuzzed-parsers": float(count), "fuzzed-inputs": float(done), "tracebacks-of-parsers": float(len(seen))}
    options.say(f"  {refused:,} of {done:,} inputs were refused with an error of ours")
    return Findings(
        figures=figures, failures=[f"fuzz: {problem} ({times} times)" for problem, times in seen.most_common()]
    )


def _batch(task: tuple[int, int]) -> tuple[list[str], int]:
    """Feed one parser a batch of inputs. Return its problems, and how many inputs it accepted."""
    from scripts.hostile.parsers import Parser, command_lines, parsers

    which, seed = task
    chance = random.Random(seed)
    resource.setrlimit(resource.RLIMIT_DATA, (_MAX_MEMORY, _MAX_MEMORY))
    signal.signal(signal.SIGPROF, _stop)
    logging.disable()
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-fuzz-"))
    parser = (*parsers(), Parser("command line", command_lines(), _command_line))[which]
    try:
        found = [_problem(parser, mutated(chance.choice(parser.seeds), chance), folder) for _ in range(_BATCH)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [problem for problem in found if problem], found.count(None)


def _command_line(data: bytes, _: Path) -> None:
    from scripts.hostile.parsers import parse_command_line

    try:
        parse_command_line(data.replace(b"\x00", b"").decode(errors="surrogateescape").splitlines())
    except Exception as error:
        # typer may bring its own copy of click, so the classes are known by their names.
        if {"ClickException", "Exit", "Abort"} & {base.__name__ for base in type(error).__mro__}:
            raise BakeoffError("refused") from None
        raise


def _problem(parser: "Parser", data: bytes, folder: Path) -> str | None:
    """Return what is wrong, an empty text if the input was refused as it should be, or None if it was accepted."""
    expected: tuple[type[Exception], ...] = (BakeoffError, *parser.accepts)
    try:
        signal.setitimer(signal.ITIMER_PROF, _HANGS_SECONDS)
        try:
            parser.read(data, folder)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except expected:
        return ""
    except _TooLong:
        _keep(parser.name, data)
        return f"{parser.name}: more than {_HANGS_SECONDS:g} s"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        _keep(parser.name, data)
        frames = traceback.extract_tb(error.__traceback__)
        place = [*frames[-1:], *(frame for frame in frames if "/bakeoff/" in frame.filename)][-1]
        where = f"{Path(place.filename).name}, {place.name}"
        return f"{parser.name}: {type(error).__name__} in {where}"
    return None


def _keep(name: str, data: bytes) -> None:
    """Keep the input for people to look at."""
    folder = Path(tempfile.gettempdir()) / "bakeoff-fuzz-findings"
    folder.mkdir(exist_ok=True, mode=0o777)
    (folder / f"{name.replace(' ', '-').replace('/', '-')}-{abs(hash(data)) % 10**8}").write_bytes(data)


def _stop(*_: object) -> None:
    raise _TooLong


def mutated(seed: bytes, chance: random.Random) -> bytes:
    """Return a mutation of a valid input: of its structure if it is JSON, of its bytes otherwise."""
    data = seed
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        changed = _of_structure(data, chance) if chance.random() < 0.5 else _of_bytes(data, chance)
        data = changed[:_MAX_LENGTH]  # each time: repeated lists would fill the memory
    return data


def _of_structure(data: bytes, chance: random.Random) -> bytes:
    """Replace, remove or repeat a value somewhere in the JSON, also on one of several lines."""
    lines = data.split(b"\n")
    at = chance.randrange(len(lines))
    for piece, put in ((data, None), (lines[at], at)):
        try:
            value = json.loads(piece)
            new = json.dumps(_changed(value, chance)).encode()
        except (ValueError, RecursionError):
            continue
        if put is None:
            return new
        return b"\n".join([*lines[:put], new, *lines[put + 1 :]])
    return _of_bytes(data, chance)


def _changed(value: Any, chance: random.Random, depth: int = 0) -> Any:
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        how = chance.random()
        if how < 0.1:
            return {name: each for name, each in value.items() if name != key}
        if how < 0.2:
            return {**value, str(chance.choice(_VALUES)): value[key]}
        return {**value, key: _changed(value[key], chance, depth + 1)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        if chance.random() < 0.15:
            return value * chance.choice((2, 50))
        return [*value[:at], _changed(value[at], chance, depth + 1), *value[at + 1 :]]
    if chance.random() < 0.03:
        for _ in range(chance.choice((50, 900))):
            value = [value] if chance.random() < 0.5 else {"a": value}
        return value
    return chance.choice(_VALUES)


def _of_bytes(data: bytes, chance: random.Random) -> bytes:
    at, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    how = chance.randrange(7)
    if how == 0 and data:
        flipped = bytearray(data)
        flipped[min(at, len(data) - 1)] ^= 1 << chance.randrange(8)
        return bytes(flipped)
    if how == 1:
        return data[:at]
    if how == 2:
        return data[:at] + data[end:]
    if how == 3:
        return data[:end] + data[at:end] * chance.choice((1, 2, 30)) + data[end:]
    if how == 4 and chance.random() < 0.1:
        return data[:at] + chance.choice((b"[", b"{'a':", b"- ", b"(", b"<a>", b'{"a":')) * 3_000 + data[at:]
    return data[:at] + chance.choice(_WORDS) + data[at if how == 5 else end :]
