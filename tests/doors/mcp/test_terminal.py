"""Test what the terminal says at the end of an evaluation: why rounds failed or were lost, and what to type next."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ...models.loopback import Act, Loopback, failure
from ...warm_bakeoff import Bakeoff
from .conftest import BMI, call


def test_the_most_frequent_reasons_are_told_with_their_rounds(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], script: Callable[..., str]
) -> None:
    wrong = {**BMI, "parameters": {"weightKg": 80, "heightM": 1.8}}
    answers = ["null", "null", call(**wrong), call(toolName="x"), "[1]"]
    replies = [(f"case {number}", reply) for number, reply in enumerate(answers)]
    cases = [{"prompt": f"case {number}", "expectedOutput": BMI} for number in range(5)]
    write_suite(testCases=cases, modelsToTest=[script(*replies)], testRound=3)
    done = bakeoff("mcp", "evaluate", "--no-open")
    assert done.returncode == 1, done.stderr
    told = " ".join(done.stdout.split())
    assert "· 6 rounds: no tool was called, expected 'health / calculate-bmi' (1. case 0, 2. case 1; " in told
    assert "· 3 rounds: parameters: weightKg: is 80, expected 90 (3. case 2; scripted:script.json)" in told
    assert "· 3 rounds: 1 other reason; the report has all" in told
    assert "Lost" not in told
    assert "bakeoff resume" not in done.stderr


def test_a_wrong_key_is_found_with_one_call_and_the_terminal_says_what_to_do(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    loopback.plan = lambda asked: (
        failure(401, "no such key") if asked.body["model"] == "closed" else Act(say=call(**BMI))
    )
    monkeypatch.setenv("LOOPBACK_KEY", "wrong-key-1234567")
    provider = {"baseUrl": f"{loopback.url}/v1", "apiKeyVariable": "LOOPBACK_KEY"}
    write_suite(modelsToTest=["loop:closed", "loop:opened"], providers={"loop": provider}, testRound=10)
    done = bakeoff("mcp", "evaluate", "--no-open")
    assert done.returncode == 3, done.stderr
    assert [asked.body["model"] for asked in loopback.received].count("closed") == 1
    told = " ".join(done.stdout.split())
    assert "· 10 rounds: 401 from loop: check LOOPBACK_KEY (no such key) (1. BMI?; loop:closed)" in told
    [run] = Path("results/runs").iterdir()
    assert f"try them again with `bakeoff resume {run.name}`" in done.stderr


def test_keys_that_providers_repeat_in_their_errors_are_not_printed(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-canary-0123456789abcdef"
    loopback.plan = lambda asked: failure(401 if asked.body["model"] == "closed" else 429, f"no: Bearer {key}")
    monkeypatch.setenv("LOOPBACK_KEY", key)
    provider = {"baseUrl": f"{loopback.url}/v1", "apiKeyVariable": "LOOPBACK_KEY"}
    write_suite(
        modelsToTest=["loop:closed", "loop:busy"],
        providers={"loop": provider},
        retryConfig={"maxRetries": 1, "baseDelay": 1, "maxDelay": 1},
    )
    done = bakeoff("mcp", "evaluate", "--no-open")
    assert done.returncode == 3, done.stderr
    told = " ".join(done.stderr.split())
    assert "(no: Bearer [redacted LOOPBACK_KEY]); no further trial of it is started" in told
    assert "trying again" in told
    assert key not in done.stderr + done.stdout


def test_an_unknown_cost_is_called_unknown(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    loopback.plan = lambda _: Act(say=call(**BMI))
    monkeypatch.setenv("LOOPBACK_KEY", "right-key-1234567")
    provider = {"baseUrl": f"{loopback.url}/v1", "apiKeyVariable": "LOOPBACK_KEY"}
    for name in ("a", "b"):
        write_suite(f"suites/{name}.yaml", modelsToTest=["loop:new"], providers={"loop": provider})
    done = bakeoff("mcp", "evaluate", "suites", "--no-open")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("15 tokens, cost: unknown") == 2
    written = [file.read_text() for file in Path("mcp-report").iterdir() if file.suffix in (".md", ".json")]
    assert not any("$0.00" in text for text in written)
    [combined] = Path("mcp-report").glob("combined-report-*.md")
    assert "| `suites/a.yaml` | passed | 1/1 | unknown |" in combined.read_text()


def test_annotations_carry_the_file_and_line_of_their_case(
    bakeoff: Bakeoff, write_suite: Callable[..., Path], script: Callable[..., str]
) -> None:
    file = write_suite(modelsToTest=[script(("", "null"))])
    file.write_text(file.read_text().replace('"testCases": [', '"testCases": [\n\n'))
    done = bakeoff("mcp", "evaluate", "--github", "--no-open")
    assert done.returncode == 1
    [annotation] = [line for line in done.stderr.splitlines() if line.startswith("::error")]
    assert annotation.startswith("::error file=mcp-testing-framework.yaml,line=3,title=scripted%3Ascript.json%3A 1.")
