"""Measure what an attacker can infer who sees both test files of a grading: which form of each test is the true one.

The attacker is a logistic regression over the differences between the two forms of a test. It learns from all other
suites, whose true forms it is told, and judges one suite that it has not seen. It knows how twins are made, and where
the two files differ. Its features are how often a value stands elsewhere, types, lengths, magnitudes and spelling
("structure"), and in a second attempt also words and numbers that a value shares with its test ("and inputs").

python -m bench.both_files [--synthetic N]   without N, the bundled suites and exercises
"""

import asyncio
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from tests.grading.corpus import bundled_cases

from bakeoff.engine.resources import open_resources
from bakeoff.grading.cases import toolchains_for
from bakeoff.grading.references import References, reference_of
from bakeoff.grading.syntax import to_bytes
from bakeoff.grading.twins import Proposals
from bakeoff.sandbox import choose_sandbox

STRUCTURE, ALL = 13, 17  # features


@dataclass(frozen=True)
class Pair:
    """One test: its true and its other text, the text of the test around it, and the title of the test."""

    true: str
    other: str
    around: str


@dataclass(frozen=True)
class Suite:
    name: str
    runner: str
    pairs: tuple[Pair, ...]
    rest: str
    """The files without what differs."""


def suite_of(name: str, runner: str, files: dict[str, str], changes: Sequence[tuple[str, Sequence[object]]]) -> Suite:
    """Return what the attacker sees, from the changes of each test: a file and its edits."""
    sources, pairs, gone = (
        {file: to_bytes(text) for file, text in files.items()},
        [],
        dict[str, list[tuple[int, int]]](),
    )
    for file, edits in changes:
        source = sources[file]
        starts = [edit.start for edit in edits]  # type: ignore[attr-defined]
        ends = [edit.end for edit in edits]  # type: ignore[attr-defined]
        line = source.rfind(b"\n\n", 0, starts[0]) + 1
        around = source[line : starts[0]] + b" " + source[ends[-1] : source.find(b"\n", ends[-1])]
        true = b" ".join(source[one:two] for one, two in zip(starts, ends, strict=True))
        other = " ".join(edit.text for edit in edits)  # type: ignore[attr-defined]
        pairs.append(Pair(true.decode(errors="replace"), other, around.decode(errors="replace")))
        gone.setdefault(file, []).extend(zip(starts, ends, strict=True))
    rest = ""
    for file, source in sources.items():
        for start, end in sorted(gone.get(file, ()), reverse=True):
            source = source[:start] + b" " + source[end:]
        rest += source.decode(errors="replace")
    return Suite(name, runner, tuple(pairs), rest)


def features(suite: Suite) -> Iterator[tuple[list[float], list[float]]]:
    """Yield, for each test, the features of its true and of its other text."""
    constants = Counter(re.findall(r"""\d[\d.]*|'[^'\n]*'|"[^"\n]*"|\w+""", suite.rest))
    words = Counter(re.findall(r"[a-z]{3,}", suite.rest.lower()))
    seen = Counter(text for pair in suite.pairs for text in {pair.true, pair.other})
    lengths = [len(text) for pair in suite.pairs for text in (pair.true, pair.other)]

    def of(text: str, pair: Pair) -> list[float]:
        numbers = [float(each) for each in re.findall(r"\d+(?:\.\d+)?", text)[:4]]
        inputs = [float(each) for each in re.findall(r"\d+(?:\.\d+)?", pair.around)[:40]]
        own, near = re.findall(r"[a-z]{3,}", text.lower()), re.findall(r"[a-z]{3,}", pair.around.lower())
        gap = min((abs(one - two) for one in numbers for two in inputs), default=99.0)
        return [
            len(text) / 10,
            abs(len(text) - float(np.median(lengths))) / 10,
            sum(map(str.isdigit, text)) / 5,
            float(text[:1] in "'\"`"),
            float(text in ("True", "true")),
            float(text in ("0", "1", "None", "null", "''", '""', "[]")),
            float(np.log1p(numbers[0])) / 5 if numbers else 0.0,
            float(bool(numbers) and numbers[0] % 10 == 0),
            float(np.log1p(constants[text])),
            float(np.log1p(seen[text])),
            float(seen[text] == 1),
            float(bool(re.search(r"\bnot\b|!=|Not", text))),
            sum(words[word] > 0 for word in own) / max(1, len(own)),
            len(set(own) & set(near)) / max(1, len(own)),
            float(any(one == two for one in numbers for two in inputs)),
            1 / (1 + gap),
            float(text.strip("'\"`") in pair.around),
        ]

    for pair in suite.pairs:
        yield of(pair.true, pair), of(pair.other, pair)


def judge(suites: Sequence[Suite], used: int) -> list[tuple[Suite, list[bool]]]:
    """Return, for each suite, which of its tests the attacker orients rightly. Ties are right half of the time."""
    draw, found = random.Random(1), []
    known = [np.array([[a - b for a, b in zip(*two, strict=True)][:used] for two in features(each)]) for each in suites]
    for index, suite in enumerate(suites):
        others = np.concatenate([each for at, each in enumerate(known) if at != index and len(each)])
        scale = others.std(axis=0) + 1e-9
        weights = minimize(
            lambda w, rows: np.logaddexp(0, -(rows @ w)).mean() + 0.002 * (w @ w),
            np.zeros(used),
            args=(others / scale,),
        ).x
        scores = known[index] / scale @ weights if len(known[index]) else []
        found.append((suite, [score > 0 if abs(score) > 1e-9 else draw.random() < 0.5 for score in scores]))
    return found


def follow_graph(suite: Suite) -> list[bool]:
    """Orient tests by the graph of values: one that a single test shows cannot be borrowed, so it is the true one."""
    draw, left, right = random.Random(suite.name), set(range(len(suite.pairs))), [False] * len(suite.pairs)
    while left:
        seen = Counter(text for at in left for text in {suite.pairs[at].true, suite.pairs[at].other})
        texts = {at: sorted({suite.pairs[at].true, suite.pairs[at].other}) for at in left}
        single = {at: [text for text in texts[at] if seen[text] == 1] for at in sorted(left)}
        lonely = [(at, found[0]) for at, found in single.items() if len(found) == 1]
        at, believed = lonely[0] if lonely else (min(left), "")
        right[at] = believed == suite.pairs[at].true if believed else draw.random() < 0.5
        left.remove(at)
    return right


async def bundled() -> list[Suite]:
    cases = bundled_cases()
    resources = (
        References("verify"),
        *toolchains_for([case.case for case in cases], lambda: choose_sandbox("auto"), 2),
    )
    suites = []
    async with open_resources(resources) as opened:
        for case in cases:
            reference = await reference_of(case, opened)
            run = (reference.confirming or reference) if reference else None
            changes = [(twin.file, twin.edits[0]) for twin in run.twins.twins] if run else []
            runner = "pytest" if case.settings.runner == "pytest" else "Vitest and Jest"
            suites.append(suite_of(case.name, runner, case.test_files, changes))
    return suites


_VALUES: list[Callable[[random.Random], object]] = [
    lambda draw: draw.randrange(10),
    lambda draw: draw.randrange(1000),
    lambda draw: draw.choice([True, False]),
    lambda draw: "".join(draw.choice("aeioulnrst") for _ in range(draw.randrange(3, 8))),
    lambda draw: " ".join(draw.choice(["red", "blue", "low", "high", "box", "bag", "4", "12"]) for _ in range(3)),
    lambda draw: [draw.randrange(9) for _ in range(draw.randrange(4))],
    lambda draw: draw.randrange(9999) / 100,
]


def synthetic(number: int) -> Suite:
    """Return a suite of 4 to 20 tests of one to three functions, each with values of one kind."""
    draw = random.Random(number)
    kinds = draw.sample(_VALUES, draw.randrange(1, 4))
    python = number % 2 == 0
    tests = []
    for at in range(draw.randrange(4, 21)):
        which = draw.randrange(len(kinds))
        value, call = kinds[which](draw), f"f{which}({draw.randrange(100)})"
        shown = repr(value) if python else repr(value).replace("True", "true").replace("False", "false")
        body = f"assert {call} == {shown}" if python else f"expect({call}).toEqual({shown});"
        tests.append(f"def test_{at}():\n    {body}\n" if python else f"it('{at}', () => {{ {body} }});\n")
    name = "test_a.py" if python else "a.test.ts"
    files = {name: "\n".join(tests)}
    proposals = Proposals(files, draw)
    changes = [(file, next(proposals.candidates(test)).edits) for file, test in proposals.tests]
    return suite_of(str(number), "pytest" if python else "Vitest and Jest", files, changes)


def main() -> int:
    count = int(sys.argv[2]) if sys.argv[1:2] == ["--synthetic"] else 0
    suites = [synthetic(number) for number in range(count)] if count else asyncio.run(bundled())
    attacks = {
        "the graph": [(suite, follow_graph(suite)) for suite in suites],
        "structure": judge(suites, STRUCTURE),
        "and inputs": judge(suites, ALL),
    }
    for label, judged in attacks.items():
        for runner in sorted({suite.runner for suite in suites}):
            of = [(suite, right) for suite, right in judged if suite.runner == runner and right]
            tests, right = sum(len(each) for _, each in of), sum(sum(each) for _, each in of)
            whole = [suite.name for suite, each in of if all(each)]
            print(f"{label:11} {runner:16} {right}/{tests} tests ({right / tests:.1%}), {len(whole)}/{len(of)} suites")
    return 0


if __name__ == "__main__":
    sys.exit(main())
