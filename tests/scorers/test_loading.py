"""Scorers cost what they need and nothing more, and are written in Python as one would type them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

import bakeoff.scorers
from bakeoff.engine.registry import default_registry
from bakeoff.errors import UsageError
from bakeoff.plan import ScorerSpec
from bakeoff.protocols import ScoreInput
from bakeoff.scorers import Command, Contains, Exact, Regex
from bakeoff.scorers.registry import scorer, scorer_kinds

HEAVY = ("pydantic_ai", "scipy", "numpy", "openai", "anthropic", "httpx2", "bakeoff.models")


@pytest.mark.parametrize(
    "code",
    [
        "from bakeoff.scorers import Contains; Contains()",
        "from bakeoff.scorers import ToolCalls, StructuredOutput; ToolCalls(), StructuredOutput()",
        "from bakeoff.scorers import Judge, Factuality; Judge('is it polite?'), Factuality()",
        "from bakeoff.engine.registry import default_registry; default_registry()",
    ],
)
def test_naming_a_scorer_loads_nothing_heavy(code: str) -> None:
    look = f"{code}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", look], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_all_right_score_needs_no_solver() -> None:
    code = (
        "import asyncio, sys\nfrom bakeoff.protocols import ScoreInput\nfrom bakeoff.record import ToolCall\n"
        "from bakeoff.scorers import ToolCalls\n"
        "given = ScoreInput.of(tool_calls=[ToolCall(name='a')], expected_tools=['a'])\n"
        "print(asyncio.run(ToolCalls()(given)).value, 'scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.strip() == "1.0 False"


def test_every_registered_scorer_is_found_and_public() -> None:
    sources = [
        path.read_text("utf-8")
        for path in Path(bakeoff.scorers.__file__).parent.rglob("*.py")
        if path.stem != "registry"
    ]
    kinds = scorer_kinds()
    assert len(kinds) == sum(source.count("\n@scorer(") for source in sources)
    assert set(default_registry().scorers) == set(kinds)
    assert all(getattr(bakeoff.scorers, known.name) is known.load() for known in kinds.values())
    assert all(known.main in known.load().options_model().model_fields for known in kinds.values() if known.main)


def test_a_registration_that_cannot_be_found_is_refused() -> None:
    with pytest.raises(TypeError, match="Contains: write the arguments of @scorer as literals"):
        scorer("elsewhere")(Contains)


def test_all_that_is_promised_is_there() -> None:
    assert [name for name in bakeoff.scorers.__all__ if not callable(getattr(bakeoff.scorers, name))] == []
    assert dir(bakeoff.scorers) == bakeoff.scorers.__all__
    with pytest.raises(AttributeError, match="has no attribute 'Vibes'"):
        _ = bakeoff.scorers.Vibes


async def test_text_scorers_read_the_row() -> None:
    given = ScoreInput.of("The capital is Paris.", expected=("paris", "CAPITAL"))
    assert (await Contains(ignore_case=True)(given)).value == 1.0
    assert (await Contains()(given)).value == 0.0
    assert (await Contains(name="named")(given)).name == "named"
    assert (await Exact(ignore_case=True)(ScoreInput.of(" YES", expected="yes"))).value == 1.0


async def test_a_pattern_may_be_a_text_a_pattern_or_the_rows() -> None:
    given = ScoreInput.of("order 66", expected=re.compile("ORDER", re.IGNORECASE))
    scorers = (Regex(r"\d+"), Regex(re.compile(r"\d+")), Regex(), Regex("ORDER", ignore_case=True))
    assert [(await scorer(given)).value for scorer in scorers] == [1.0, 1.0, 1.0, 1.0]
    assert (await Regex("ORDER")(given)).value == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Regex("("), "scorer 'regex': pattern '(' is not a regular expression"),
        (lambda: Regex(cast("re.Pattern[str]", re.compile(b"x"))), "is for bytes"),
        (lambda: Command([]), "option argv"),
        (lambda: Command("python check.py"), "option argv"),
        (lambda: Command(["x"], seconds=-1), "option seconds"),
    ],
)
def test_what_makes_no_sense_is_told_when_it_is_written(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(UsageError, match=re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("kind", "options", "built"),
    [
        ("contains", {"ignore_case": True}, Contains(ignore_case=True)),
        ("exact", {"strip": False}, Exact(strip=False)),
        ("regex", {"pattern": "x"}, Regex("x")),
        ("command", {"argv": ["true"], "seconds": 5}, Command(["true"], seconds=5)),
    ],
)
def test_a_plan_says_the_same_as_python(kind: str, options: dict[str, object], built: object) -> None:
    spec = ScorerSpec.model_validate({"kind": kind, "options": options})
    assert default_registry().scorers[kind](spec) == built
