"""Test what reaches a provider, in the words that its API documents; and where addresses and keys come from."""

import asyncio
import ssl
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from bakeoff.engine.registry import default_registry
from bakeoff.models.clients import is_loopback
from bakeoff.plan import SubjectSpec
from bakeoff.protocols import Tool
from bakeoff.record import Record
from bakeoff.verdict import Verdict

from .loopback import KEY, PRICE, Act, Loopback, Received, plan_of

CarryOut = Callable[..., Awaitable[list[Record]]]

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


async def _look_up(given: Mapping[str, JsonValue]) -> JsonValue:
    return {"found": given.get("city")}


LOOK_UP = Tool("look_up", "Looks up a city", SCHEMA, _look_up)
WITH_TOOL = default_registry().with_tools(lambda *_: (LOOK_UP,))

PROVIDERS = {  # model: key variable, address variable, what is added to the server's address
    "openai:gpt-4o": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
    "openai-responses:gpt-4o": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
    "deepseek:deepseek-chat": ("DEEPSEEK_API_KEY", "DEEPSEEK_API_URL", ""),
    "anthropic:claude-sonnet-4-5": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""),
    "google:gemini-2.5-flash": ("GEMINI_API_KEY", "GEMINI_BASE_URL", ""),
    "openai/gpt-5": ("AI_GATEWAY_API_KEY", "AI_GATEWAY_BASE_URL", "/v1"),
}


@pytest.fixture
def ask_as(
    provider: Loopback, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Awaitable[tuple[Record, Received]]]:
    """Ask under a provider's own name, with its variables pointing here; gives the record and the last request."""

    async def ask(model: str, kind: str = "model", **options: Any) -> tuple[Record, Received]:
        key, address, path = PROVIDERS[model]
        monkeypatch.setenv(key, KEY)
        monkeypatch.setenv(address, provider.url + path)
        spec = SubjectSpec(kind=kind, name="m", options={"model": model, "price": PRICE, **options})
        registry = WITH_TOOL if kind == "agent" else None
        [record] = await carry_out(plan_of(spec), registry=registry, retries=0)
        assert record.failure is None, record.failure
        return record, provider.received[-1]

    return ask


AskAs = Callable[..., Awaitable[tuple[Record, Received]]]

ALL = {"system": "Be brief.", "temperature": 0.3, "seed": 7, "max_tokens": 99}


async def test_openai_is_asked_as_its_chat_api_documents(ask_as: AskAs) -> None:
    record, request = await ask_as("openai:gpt-4o", **ALL)
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "gpt-4o",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "question 0"}],
        "temperature": 0.3,
        "seed": 7,
        "max_completion_tokens": 99,
        "stream": False,
    }
    assert record.verdict is Verdict.PASS


async def test_openai_is_asked_for_a_stream_with_its_usage(ask_as: AskAs) -> None:
    record, request = await ask_as("openai:gpt-4o", stream=True)
    assert request.body["stream"] is True
    assert request.body["stream_options"] == {"include_usage": True}
    assert record.spent.cost == 0.002


async def test_openais_responses_api_is_asked_as_documented(ask_as: AskAs) -> None:
    record, request = await ask_as("openai-responses:gpt-4o", **ALL)
    assert request.path == "/v1/responses"
    assert request.body["model"] == "gpt-4o"
    assert request.body["temperature"] == 0.3
    assert request.body["max_output_tokens"] == 99
    told = str(request.body.get("instructions")) + str(request.body["input"])
    assert "Be brief." in told
    assert "question 0" in told
    assert record.verdict is Verdict.PASS
    assert record.spent.cost == 0.002


async def test_deepseek_is_asked_at_its_own_address_in_openais_words(ask_as: AskAs) -> None:
    _, request = await ask_as("deepseek:deepseek-chat", **ALL)
    assert request.path == "/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert request.body["model"] == "deepseek-chat"
    assert request.body["temperature"] == 0.3
    assert request.body.get("max_tokens", request.body.get("max_completion_tokens")) == 99


async def test_the_gateway_is_asked_for_maker_and_model(ask_as: AskAs) -> None:
    _, request = await ask_as("openai/gpt-5", system="Be brief.")
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "openai/gpt-5"
    assert [message["content"] for message in request.body["messages"]] == ["Be brief.", "question 0"]


async def test_anthropic_is_asked_as_its_messages_api_documents(ask_as: AskAs) -> None:
    record, request = await ask_as("anthropic:claude-sonnet-4-5", **ALL)
    assert (request.method, request.path) == ("POST", "/v1/messages")
    assert KEY in (request.headers.get("x-api-key"), request.headers.get("authorization", "").removeprefix("Bearer "))
    assert request.headers["anthropic-version"]
    body = request.body
    assert body["model"] == "claude-sonnet-4-5"
    assert body["max_tokens"] == 99
    assert body["temperature"] == 0.3
    assert "seed" not in body
    assert "Be brief." in str(body["system"])
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "question 0"}]}]
    assert record.verdict is Verdict.PASS
    assert record.spent.cost == 0.002


async def test_anthropic_is_given_room_for_an_answer_where_none_was_asked_for(ask_as: AskAs) -> None:
    _, request = await ask_as("anthropic:claude-sonnet-4-5")
    assert request.body["max_tokens"] >= 4096


async def test_google_is_asked_as_generate_content_documents(ask_as: AskAs) -> None:
    record, request = await ask_as("google:gemini-2.5-flash", **ALL)
    assert request.path in [f"/{version}/models/gemini-2.5-flash:generateContent" for version in ("v1", "v1beta")]
    assert request.headers["x-goog-api-key"] == KEY
    assert KEY not in request.target
    body = request.body
    assert body["contents"] == [{"role": "user", "parts": [{"text": "question 0"}]}]
    assert body["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    wanted = body["generationConfig"]
    assert (wanted["temperature"], wanted["seed"], wanted["maxOutputTokens"]) == (0.3, 7, 99)
    assert record.verdict is Verdict.PASS
    assert record.spent.cost == 0.002


@pytest.mark.parametrize("model", PROVIDERS)
async def test_the_trials_seed_is_asked_for_where_the_api_has_one_and_none_was_given(ask_as: AskAs, model: str) -> None:
    _, request = await ask_as(model)
    seed = request.body.get("seed", request.body.get("generationConfig", {}).get("seed"))
    assert seed == (None if model.split(":")[0] in ("anthropic", "openai-responses") else 0)


def declared(body: Mapping[str, Any]) -> tuple[str, str, Any]:
    """The one tool that a request declares: name, description and schema."""
    [tool] = body["tools"]
    if "functionDeclarations" in tool:
        [tool] = tool["functionDeclarations"]
    tool = tool.get("function", tool)
    [schema] = [tool[key] for key in ("parameters", "input_schema", "parameters_json_schema") if key in tool] or [tool]
    return tool["name"], tool["description"], schema


@pytest.mark.parametrize("model", [model for model in PROVIDERS if "responses" not in model])
async def test_a_tool_is_declared_and_its_result_told_in_each_apis_words(
    provider: Loopback, ask_as: AskAs, model: str
) -> None:
    skip = 1 if "/" in model else 0  # the gateway is asked for its models first
    provider.plan = lambda request: (
        Act(calls=(("look_up", {"city": "Oslo"}),)) if request.number == skip else Act(say="yes")
    )
    record, request = await ask_as(model, kind="agent")
    name, description, schema = declared(request.body)
    assert (name, description) == ("look_up", "Looks up a city")
    assert schema["properties"]["city"]["type"].lower() == "string"
    assert schema["required"] == ["city"]
    told = str(request.body.get("messages", request.body.get("contents")))
    assert "Oslo" in told
    assert "found" in told
    assert record.transcript is not None
    [call] = record.transcript.tool_calls
    assert (call.name, call.arguments, call.result) == ("look_up", {"city": "Oslo"}, {"found": "Oslo"})
    assert record.verdict is Verdict.PASS
    assert record.spent.requests == 2


@pytest.mark.parametrize("model", ["openai:gpt-4o", "google:gemini-2.5-flash", "anthropic:claude-sonnet-4-5"])
async def test_an_answer_that_must_fit_a_schema_is_asked_for_natively(ask_as: AskAs, model: str) -> None:
    _, request = await ask_as(model, output_schema=SCHEMA)
    body = request.body
    asked = body.get("response_format", body.get("generationConfig", body.get("output_config", body)))
    assert "city" in str(asked), body
    assert "tools" not in body


async def test_a_thinking_models_thoughts_are_kept_and_sent_back_signed(provider: Loopback, ask_as: AskAs) -> None:
    provider.plan = lambda request: (
        Act(think="let me see", calls=(("look_up", {"city": "Oslo"}),)) if request.number == 0 else Act(say="yes")
    )
    record, request = await ask_as("anthropic:claude-sonnet-4-5", kind="agent")
    assert record.transcript is not None
    assert [part.type for part in record.transcript.steps[0].parts] == ["reasoning", "tool"]
    assert {"type": "thinking", "thinking": "let me see", "signature": "c2lnbmVk"} in request.body["messages"][1][
        "content"
    ]


@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-4-5", "google:gemini-2.5-flash"])
async def test_others_refuse_in_their_own_words_and_it_is_an_answer(
    provider: Loopback, ask_as: AskAs, model: str
) -> None:
    provider.then(Act(say="I would", finish="content_filter"))
    record, _ = await ask_as(model)
    assert record.verdict is Verdict.FAIL
    assert record.transcript is not None
    assert record.transcript.steps[0].finish_reason == "content_filter"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "act",
    [
        Act(status=500, body={"error": {"message": "no"}}),
        Act(status=429, body={"error": {"message": "no"}}),
        Act(say="yes and no", cut=1),
    ],
    ids=["500", "429", "cut"],
)
@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-4-5", "google:gemini-2.5-flash"])
async def test_others_are_tried_again_by_the_gate_and_by_nobody_else(
    provider: Loopback, ask_as: AskAs, model: str, act: Act, stream: bool
) -> None:
    provider.then(act, act)
    record, _ = await ask_as(model, stream=stream, first_wait_seconds=0.01)
    assert record.verdict is Verdict.PASS
    assert len(provider.received) == 3
    assert record.spent.cost == 0.002


@pytest.mark.parametrize("usage", [{"input": -1, "output": 5}, {"input": 10**15, "output": 5}, {}], ids=str)
@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-4-5", "google:gemini-2.5-flash"])
async def test_others_may_count_wrongly_too(
    provider: Loopback, ask_as: AskAs, model: str, usage: dict[str, int]
) -> None:
    provider.then(Act(usage=usage))
    record, _ = await ask_as(model)
    assert record.verdict is Verdict.PASS
    assert record.spent.cost is None


@pytest.mark.parametrize(
    ("model", "stream"),
    [
        ("anthropic:claude-sonnet-4-5", True),
        ("anthropic:claude-sonnet-4-5", False),  # the SDK streams unasked what may be long
        ("google:gemini-2.5-flash", True),
    ],
)
async def test_a_stream_of_others_that_ends_early_is_not_taken_for_the_answer(
    provider: Loopback, ask_as: AskAs, stream: bool, model: str
) -> None:
    provider.then(Act(say="yes or rather no", stop=3))
    record, _ = await ask_as(model, stream=stream, first_wait_seconds=0.01)
    assert record.verdict is Verdict.PASS
    assert len(provider.received) == 2


@pytest.mark.parametrize("name", ["ollama", "lmstudio", "vllm", "openai-compatible"])
async def test_a_server_of_ones_own_needs_an_address_and_no_key(
    provider: Loopback, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    variable = name.upper().replace("-", "_")
    monkeypatch.setenv(f"{variable}_BASE_URL", f"{provider.url}/v1")
    monkeypatch.delenv(f"{variable}_API_KEY", raising=False)
    spec = SubjectSpec(kind="model", name="m", options={"model": f"{name}:qwen3:0.6b"})
    [record] = await carry_out(plan_of(spec))
    assert record.verdict is Verdict.PASS
    assert provider.received[0].body["model"] == "qwen3:0.6b"
    assert record.spent.tokens == 15


async def test_two_subjects_may_mean_different_servers_by_one_name(
    provider: Loopback, carry_out: CarryOut, model_spec: Callable[..., SubjectSpec]
) -> None:
    other = Loopback()
    other.start()
    try:
        there = {"loopback": {"base_url": f"{other.url}/v1", "key_variable": "LOOPBACK_API_KEY"}}
        await carry_out(plan_of(model_spec("a"), model_spec("b", providers=there)))
        assert (len(provider.received), len(other.received)) == (1, 1)
    finally:
        other.stop()


async def test_keys_come_from_the_environment_before_env_local_before_env(
    provider: Loopback, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(name: str, **values: str) -> None:
        Path(name).write_text("".join(f"{key}={value}\n" for key, value in values.items()))

    async def key_sent() -> str:
        await carry_out(plan_of(SubjectSpec(kind="model", name="m", options={"model": "openai:x", "price": PRICE})))
        return provider.received[-1].headers["authorization"].removeprefix("Bearer ")

    write(".env", OPENAI_API_KEY="sk-from-env-file", OPENAI_BASE_URL=f"{provider.url}/v1")
    assert await key_sent() == "sk-from-env-file"
    write(".env.local", OPENAI_API_KEY="sk-from-env-local$HOME")
    assert await key_sent() == "sk-from-env-local$HOME"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    assert await key_sent() == "sk-from-environment"


async def test_no_file_of_a_run_holds_a_key(
    provider: Loopback, carry_out: CarryOut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even when the provider sends it back: in an answer, in an error, in a header."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    provider.then(
        Act(say=f"your key is {KEY}"),
        Act(status=401, headers={"x-key": KEY}, body={"error": {"message": f"wrong key {KEY}"}}),
    )
    spec = SubjectSpec(kind="model", name="m", options={"model": "openai:x", "price": PRICE})
    recordings = tmp_path / "recordings"
    await carry_out(plan_of(spec, cases=2), jobs=1, replay="record", recordings=recordings)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.is_relative_to(recordings) for path in files)
    assert any(path.name.endswith(".jsonl") for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("variable", ["WHATEVER", "LOOPBACK_API_KEY"])
async def test_a_key_is_kept_out_of_files_whatever_its_variable_is_called(
    provider: Loopback,
    carry_out: CarryOut,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model_spec: Callable[..., SubjectSpec],
    variable: str,
) -> None:
    key = "0123-plain-words-abcd"
    monkeypatch.setenv(variable, f" {key}\n")
    there = {"loopback": {"base_url": f"{provider.url}/v1/", "key_variable": variable}}
    provider.then(Act(say=f"your key is {key}"))
    await carry_out(plan_of(model_spec(providers=there)), replay="record", recordings=tmp_path / "recorded")
    assert provider.received[0].headers["authorization"] == f"Bearer {key}"
    assert provider.received[0].path == "/v1/chat/completions"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert [path for path in files if key.encode() in path.read_bytes()] == []


async def test_an_address_may_be_written_with_the_end_that_documentation_gives_it(
    provider: Loopback, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    for end in ("/v1", "/v1/", "/v1/chat/completions"):
        monkeypatch.setenv("DEEPSEEK_API_URL", provider.url + end)
        await carry_out(plan_of(SubjectSpec(kind="model", name="m", options={"model": "deepseek:deepseek-chat"})))
        assert provider.received[-1].path == "/v1/chat/completions"


async def test_a_proxy_of_the_environment_is_used_but_not_for_whom_it_is_not_meant(
    provider: Loopback, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SubjectSpec(
        kind="model",
        name="m",
        options={"model": "far:x", "providers": {"far": {"base_url": "http://models.example.test/v1"}}, "price": PRICE},
    )
    monkeypatch.setenv("HTTP_PROXY", provider.url)
    [record] = await carry_out(plan_of(spec))
    assert record.verdict is Verdict.PASS
    assert provider.received[0].target == "http://models.example.test/v1/chat/completions"
    monkeypatch.setenv("NO_PROXY", "models.example.test")
    quick = spec.model_copy(update={"options": {**spec.options, "patience_seconds": 0.01}})
    [record] = await carry_out(plan_of(quick), retries=0)
    assert record.verdict is Verdict.INFRA
    assert len(provider.received) == 1


async def test_this_machine_is_never_asked_through_a_proxy(
    provider: Loopback, carry_out: CarryOut, model_spec: Callable[..., SubjectSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for host in ("127.0.0.1", "localhost"):
        there = {"loopback": {"base_url": f"http://{host}:{provider.port}/v1", "key_variable": "LOOPBACK_API_KEY"}}
        [record] = await carry_out(plan_of(model_spec(providers=there, patience_seconds=0.1)), retries=0)
        assert record.verdict is Verdict.PASS, record.failure


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:80/v1", True),
        ("http://127.8.9.10", True),
        ("https://localhost", True),
        ("http://models.localhost:1", True),
        ("http://[::1]:80/v1", True),
        ("http://128.0.0.1", False),
        ("https://localhost.example.test", False),
        (None, False),
    ],
)
def test_which_addresses_are_on_this_machine(url: str | None, here: bool) -> None:
    assert is_loopback(url) is here


async def test_a_certificate_authority_of_ones_own_is_believed_when_the_environment_names_it(
    nobody: None,
    carry_out: CarryOut,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    needs_program: Callable[[str], str],
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    making = [
        needs_program("openssl"),
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=me",
    ]
    made = ["-keyout", str(key), "-out", str(certificate), "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*making, *made], check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    server = Loopback(tls)
    server.start()
    try:
        there = {"mine": {"base_url": f"{server.url}/v1"}}
        options: dict[str, Any] = {"model": "mine:x", "providers": there, "patience_seconds": 0.01}
        plan = plan_of(SubjectSpec(kind="model", name="m", options=options))
        [stranger] = await carry_out(plan, retries=0)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        [known] = await carry_out(plan, retries=0)
    finally:
        server.stop()
    assert (stranger.verdict, known.verdict) == (Verdict.INFRA, Verdict.PASS)


def test_runs_one_after_another_in_different_loops_do_not_meet(
    provider: Loopback, carry_out: CarryOut, model_spec: Callable[..., SubjectSpec]
) -> None:
    async def once() -> Verdict:
        [record] = await carry_out(plan_of(model_spec()))
        return record.verdict

    assert [asyncio.run(once()) for _ in range(3)] == [Verdict.PASS] * 3


async def test_a_run_leaves_no_task_behind(
    provider: Loopback, carry_out: CarryOut, model_spec: Callable[..., SubjectSpec]
) -> None:
    before = asyncio.all_tasks()
    provider.then(Act(cut=1), Act(first_byte=0.3))
    await carry_out(plan_of(model_spec(timeout=0.2, stream=True), cases=5))
    assert asyncio.all_tasks() == before
