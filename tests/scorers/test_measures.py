"""Test what an answer took, and what it means."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bakeoff.errors import GraderError, InfraError, UsageError
from bakeoff.plan import ScorerSpec
from bakeoff.protocols import ScoreInput
from bakeoff.record import Usage
from bakeoff.scorers import Cost, Latency, Semantic


@pytest.mark.parametrize(("seconds", "value"), [(0.1, 1.0), (0.2, 1.0), (0.3, 0.0), (None, None)])
async def test_time_is_scored_against_a_limit(seconds: float | None, value: float | None) -> None:
    scored = await Latency(max_ms=200)(ScoreInput.of("x", seconds=seconds))
    assert scored.value == value
    assert bool(scored.reason) is (value != 1.0)


@pytest.mark.parametrize(("cost", "value"), [(0.0, 1.0), (0.01, 1.0), (0.02, 0.0)])
async def test_money_is_scored_against_a_limit(cost: float, value: float) -> None:
    scored = await Cost(max_usd=0.01)(ScoreInput.of("x", usage=Usage(cost=cost)))
    assert scored.value == value
    assert bool(scored.reason) is (value != 1.0)


@pytest.mark.parametrize("usage", [Usage(), Usage(input=9), Usage(input=9, cost=0.01, unpriced=4)])
async def test_a_cost_that_is_not_known_is_not_within_a_limit(usage: Usage) -> None:
    with pytest.raises(GraderError, match=r"the cost of the answer is unknown.*: give its model a `price`"):
        await Cost(max_usd=0.01)(ScoreInput.of("x", usage=usage))
    beyond = await Cost(max_usd=0.01)(ScoreInput.of("x", usage=Usage(input=9, cost=0.02, unpriced=4)))
    assert beyond.value == 0.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Latency(max_ms=0),
        lambda: Cost(max_usd=-1),
        lambda: Latency.from_spec(ScorerSpec(kind="latency", options={})),
        lambda: Cost.from_spec(ScorerSpec(kind="cost", options={"max_usd": "much"})),
    ],
)
def test_limits_that_make_no_sense_are_told_at_once(make: Any) -> None:
    with pytest.raises(UsageError, match=r"max_(ms|usd)"):
        make()


# --- meaning ------------------------------------------------------------------------------------------------------


def letters(texts: list[str]) -> list[list[float]]:
    return [[text.count(letter) for letter in "abc"] for text in texts]


async def letters_later(texts: list[str]) -> list[list[float]]:
    return letters(texts)


@pytest.mark.parametrize("embed", [letters, letters_later])
@pytest.mark.parametrize(
    ("output", "expected", "value"),
    [("ab", "ba", 1.0), ("a", "b", 0.0), ("a", "ab", 0.5**0.5), ("a", None, None), ("", "a", 0.0), ("", "", 1.0)],
)
async def test_meanings_are_compared_by_a_function_of_the_users(
    embed: Any, output: str, expected: str | None, value: float | None
) -> None:
    scored = await Semantic(embed=embed)(ScoreInput.of(output, expected=expected))
    assert scored.value == (value if value is None else pytest.approx(value))


async def test_the_opposite_meaning_scores_0() -> None:
    scored = await Semantic(embed=lambda texts: [[1.0], [-1.0]])(ScoreInput.of("a", expected="b"))
    assert (scored.value, scored.metadata["cosine"]) == (0.0, -1.0)


@pytest.mark.parametrize("vectors", [[[1.0]], [[1.0], [1.0, 2.0]], "no", [["x"], ["y"]], None, [[float("nan")]] * 2])
async def test_embeddings_that_are_none_are_the_graders_fault(vectors: Any) -> None:
    with pytest.raises(GraderError, match="scorer 'semantic'"):
        await Semantic(embed=lambda texts: vectors)(ScoreInput.of("a", expected="b"))


def test_without_embeddings_it_says_what_to_install() -> None:
    with pytest.raises(UsageError, match=r"`pip install sentence-transformers`, or give it `embed`"):
        Semantic()


async def test_sentence_transformers_are_used_where_they_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package of that name which counts letters stands in: the real one wants weights from afar."""
    code = "class SentenceTransformer:\n    def __init__(self, name): pass\n"
    code += "    def encode(self, texts): return [[text.count(c) for c in 'abc'] for text in texts]\n"
    (tmp_path / "sentence_transformers.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert (await Semantic()(ScoreInput.of("ab", expected="ba"))).value == pytest.approx(1.0)


class Embeddings(BaseHTTPRequestHandler):
    """An embeddings endpoint as OpenAI has it."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fine = self.headers["Authorization"] == "Bearer sk-test" and self.path == "/v1/embeddings"
        data: Any = {"data": [{"embedding": vector} for vector in letters(asked["input"])]}
        body = json.dumps(data if asked["model"] == "letters" else {"oops": 1}).encode()
        self.send_response(200 if fine else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "sk-test")
    yield
    server.shutdown()
    thread.join()
    server.server_close()


async def test_embeddings_are_asked_for_over_the_api(endpoint: None) -> None:
    scorer = Semantic(model="openai-compatible:letters")
    assert (await scorer(ScoreInput.of("ab", expected="ba"))).value == pytest.approx(1.0)
    assert scorer.secrets() == {"OPENAI_COMPATIBLE_API_KEY": "sk-test"}
    assert scorer.lacks() == []
    assert (await scorer.offline()(ScoreInput.of("ab", expected="ba"))).value is None


async def test_an_answer_without_embeddings_is_the_providers_fault(
    endpoint: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ScoreInput.of("a", expected="b")
    with pytest.raises(InfraError, match="its answer has no embeddings"):
        await Semantic(model="openai-compatible:other")(given)
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "wrong")
    with pytest.raises(InfraError, match="no embeddings"):
        await Semantic(model="openai-compatible:letters")(given)


def test_what_is_missing_for_embeddings_is_told_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert "no key: set OPENAI_API_KEY" in Semantic(model="openai:text-embedding-3-small").lacks()[0]
    with pytest.raises(UsageError, match="does not use the OpenAI API"):
        Semantic(model="local:smollm2")
    with pytest.raises(UsageError, match="give `embed` or `model`, not both"):
        Semantic(model="openai:x", embed=letters)
    with pytest.raises(UsageError, match="cannot be imported"):
        Semantic.from_spec(ScorerSpec(kind="semantic", options={"embed": "nowhere:f"}))


def test_scorers_are_called_by_whoever_wants_to() -> None:
    assert asyncio.run(Latency(max_ms=1)(ScoreInput.of("x", seconds=0.0))).value == 1.0
