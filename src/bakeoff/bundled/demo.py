"""The plan of `bakeoff demo`: six questions and four small programs, for a real model and three controls."""

import json

from pydantic import JsonValue

from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec

_LIMITS = Limits(attempt_seconds=180, score_seconds=90, memory_mb=512, processes=32, disk_mb=32, output_kb=64)

_QUESTIONS: dict[str, tuple[str, str]] = {
    "capital-of-france": ("What is the capital of France? Answer with the city.", "Paris"),
    "sum": ("What is 17 + 25? Answer with the number.", "42"),
    "opposite-of-hot": ("What is the opposite of hot? Answer with one word.", "cold"),
    "colour-of-grass": ("What colour is grass? Answer with one word.", "green"),
    "days-in-a-week": ("How many days has a week? Answer with the number.", "7"),
    "chemical-symbol": ("What is the chemical symbol of gold?", "Au"),
}

# Runs beside the solution, calls it once for each example, and writes the outcomes as JUnit XML.
_CHECK = """\
import json
from xml.sax.saxutils import quoteattr

examples = json.load(open("examples.json"))
try:
    from solution import solve
except BaseException as error:
    problem = error
    def solve(*arguments):
        raise RuntimeError(f"solution.py cannot be imported: {problem}")

def outcome(arguments, expected):
    try:
        found = solve(*arguments)
    except BaseException as error:
        return f"<failure message={quoteattr(repr(error))}/>"
    return "" if found == expected else f"<failure message={quoteattr(f'{found!r} is not {expected!r}')}/>"

tests = [
    f"<testcase name={quoteattr(f'solve{tuple(arguments)}')}>{outcome(arguments, expected)}</testcase>"
    for arguments, expected in examples
]
open("report.xml", "w").write(f"<testsuite>{''.join(tests)}</testsuite>")
"""

_PROGRAMS: dict[str, tuple[str, str, list[list[JsonValue]]]] = {
    "reverse-words": (
        "reverses the order of the words in a sentence",
        "def solve(text):\n    return ' '.join(reversed(text.split()))\n",
        [[["one two three"], "three two one"], [["alone"], "alone"], [[""], ""]],
    ),
    "count-vowels": (
        "counts the vowels (a, e, i, o, u, in either case) in a text",
        "def solve(text):\n    return sum(letter in 'aeiou' for letter in text.lower())\n",
        [[["banana"], 3], [["RHYTHM"], 0], [["Audio"], 4]],
    ),
    "second-largest": (
        "returns the second largest of the distinct numbers in a list, or None if there is none",
        "def solve(numbers):\n    return (sorted(set(numbers))[-2:-1] or [None])[0]\n",
        [[[[3, 1, 2]], 2], [[[5, 5, 4]], 4], [[[7]], None]],
    ),
    "run-lengths": (
        "compresses 'aaab' to 'a3b1'",
        "from itertools import groupby\n\n\ndef solve(text):\n"
        "    return ''.join(f'{letter}{len(list(run))}' for letter, run in groupby(text))\n",
        [[["aaab"], "a3b1"], [[""], ""], [["abc"], "a1b1c1"]],
    ),
}

# A mediocre subject: some answers are right, some wrong, one changes between rounds, one gives up.
_SCRIPT: dict[str, JsonValue] = {
    "answers": {
        "capital-of-france": "The capital of France is Paris.",
        "sum": ["42", "It is 43."],
        "opposite-of-hot": "cold",
        "colour-of-grass": "blue",
        "days-in-a-week": "There are 7 days.",
        "chemical-symbol": "Gold is Ag.",
        "reverse-words": {"files": {"solution.py": _PROGRAMS["reverse-words"][1]}},
        "count-vowels": {"files": {"solution.py": "def solve(text):\n    return sum(c in 'aeiou' for c in text)\n"}},
        "second-largest": {"files": {"solution.py": "def solve(numbers):\n    return sorted(numbers)[-2]\n"}},
        "run-lengths": {"files": {"solution.py": "def solve(text):\n    raise NotImplementedError\n"}},
    }
}

# A real model, small enough to run on this machine.
_MODEL = SubjectSpec(
    kind="model",
    name="smollm2",
    options={"model": "local:smollm2", "system": "Answer in a few words.", "temperature": 0, "max_tokens": 128},
)


def demo_plan(*, with_model: bool) -> Plan:
    """Return a plan that finishes in seconds and shows every column of the report."""
    return Plan(
        name="demo",
        cases=(*_question_cases(), *_program_cases()),
        subjects=(
            SubjectSpec(kind="oracle", name="oracle"),
            SubjectSpec(kind="scripted", name="scripted", options=_SCRIPT),
            SubjectSpec(kind="nop", name="nop"),
            *([_MODEL] if with_model else []),
        ),
        scorers=(
            ScorerSpec(kind="contains"),
            ScorerSpec(
                kind="command", options={"argv": ["python3", "-B", "check.py"], "seconds": 20, "junit": "report.xml"}
            ),
        ),
        rounds=2,
    )


def _question_cases() -> list[Case]:
    return [
        Case(id=name, prompt=prompt, expected=expected, tags={"kind": "question"}, limits=_LIMITS)
        for name, (prompt, expected) in _QUESTIONS.items()
    ]


def _program_cases() -> list[Case]:
    return [
        Case(
            id=name,
            prompt=f"Write a Python function `solve` that {task}. Reply with the code of solution.py only.",
            collect=("solution.py",),
            answer_file="solution.py",
            hidden={"check.py": _CHECK, "examples.json": json.dumps(examples)},
            reference={"solution.py": reference},
            tags={"kind": "program"},
            limits=_LIMITS,
        )
        for name, (task, reference, examples) in _PROGRAMS.items()
    ]
