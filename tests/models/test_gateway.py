"""The gateway's list, from a real server on loopback that misbehaves when it is told to."""

import gzip
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bakeoff._kernel.environment import cache_folder
from bakeoff.errors import InfraError, UsageError
from bakeoff.models.gateway import (
    BASE_URL,
    GatewayModel,
    GatewayModels,
    PriceBook,
    fetch_models,
    gateway_base,
    gateway_models,
    kept_models,
    refresh_models,
)

REST = {
    "object": "list",
    "data": [
        {
            "id": "anthropic/claude-sonnet-4",
            "object": "model",
            "owned_by": "anthropic",
            "context_window": 200_000,
            "type": "language",
            "pricing": {
                "input": "0.000004",
                "output": "0.00002",
                "input_cache_read": "0.0000004",
                "input_cache_write": "0.000005",
            },
        },
        {"id": "acme/rocket", "type": "language", "pricing": {"input": "cheap", "output": "0.1"}},
        {"id": "openai/gpt-5", "type": "language"},
        {"id": "acme/unheard-of", "type": "language", "pricing": {}},
        {"id": "acme/painter", "type": "image", "pricing": {"image": "0.04"}},
    ],
}
SDK = {
    "models": [
        {
            "id": "anthropic/claude-sonnet-4",
            "modelType": "language",
            "pricing": {
                "input": "0.000004",
                "output": "0.00002",
                "cachedInputTokens": "0.0000004",
                "cacheCreationInputTokens": "0.000005",
            },
        }
    ]
}


class Server(ThreadingHTTPServer):
    """Answers every request with what `answer` writes; remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.answer: Callable[[BaseHTTPRequestHandler], None] = says(REST)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        self.server.asked.append((self.path, dict(self.headers)))
        self.server.answer(self)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def says(content: Any, status: int = 200, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def hangs_up(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A gateway on loopback, with a cache folder of the test's own."""
    with Server() as server:
        monkeypatch.setenv("BAKEOFF_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("AI_GATEWAY_BASE_URL", server.base)
        monkeypatch.setenv("AI_GATEWAY_API_KEY", "secret-of-the-person")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def age_kept_list(server: Server, age: timedelta) -> GatewayModels:
    """As if the list had been fetched that long ago."""
    kept = kept_models()
    assert kept is not None
    aged = kept.model_copy(update={"fetched": datetime.now(UTC) - age})
    (file,) = (cache_folder() / "gateway").iterdir()
    file.write_text(aged.model_dump_json())
    return aged


def test_the_list_is_fetched_from_v1_models_without_the_persons_key(server: Server) -> None:
    models = fetch_models(server.base)
    assert [model.id for model in models.models] == [entry["id"] for entry in REST["data"]]  # type: ignore[index]
    assert models.models[0].context == 200_000
    ((path, headers),) = server.asked
    assert path == "/v1/models"
    assert "secret-of-the-person" not in str(headers)


@pytest.mark.parametrize("shape", [REST, SDK], ids=["REST", "AI SDK"])
def test_a_listed_price_is_the_gateways_and_bears_the_day_it_was_fetched(server: Server, shape: Any) -> None:
    server.answer = says(shape)
    price = PriceBook().price("gateway", "anthropic/claude-sonnet-4")
    assert price is not None
    assert price.model_dump() == {
        "input": Decimal("0.000004"),
        "output": Decimal("0.00002"),
        "cache_read": Decimal("0.0000004"),
        "cache_write": Decimal("0.000005"),
        "key": "anthropic/claude-sonnet-4",
        "source": "gateway",
        "date": datetime.now(UTC).date(),
        "tiers": (),
    }


def test_a_compressed_answer_is_read(server: Server) -> None:
    server.answer = says(gzip.compress(json.dumps(REST).encode()), Content_Encoding="gzip")
    assert fetch_models(server.base).find("openai/gpt-5") is not None


def test_a_listed_model_without_a_price_costs_what_its_maker_asks(server: Server) -> None:
    price = PriceBook().price("gateway", "openai/gpt-5")
    assert price is not None
    assert (price.source, price.key) == ("genai-prices", "openai/gpt-5")


@pytest.mark.parametrize("model", ["acme/unheard-of", "acme/not-listed", "no-slash"])
def test_a_model_that_nobody_has_a_price_for_has_none(server: Server, model: str) -> None:
    assert PriceBook().price("gateway", model) is None


def test_a_senseless_price_is_an_error_for_its_own_model_only(server: Server) -> None:
    book = PriceBook()
    with pytest.raises(UsageError, match=r"'acme/rocket'.*'cheap'"):
        book.price("gateway", "acme/rocket")
    assert book.price("gateway", "anthropic/claude-sonnet-4") is not None


def test_a_price_that_is_not_a_number_in_json_either_stays_an_error_after_it_was_kept(server: Server) -> None:
    server.answer = says(b'{"data": [{"id": "acme/rocket", "pricing": {"input": NaN, "output": "0.1"}}]}')
    with pytest.raises(UsageError, match=r"'acme/rocket'"):
        refresh_models().price("acme/rocket")
    kept = kept_models()
    assert kept is not None
    with pytest.raises(UsageError, match=r"'acme/rocket'"):
        kept.price("acme/rocket")


def test_other_providers_models_are_priced_without_asking_the_gateway(server: Server) -> None:
    price = PriceBook().price("anthropic", "claude-sonnet-4")
    assert price is not None
    assert price.source == "genai-prices"
    assert server.asked == []


def test_a_local_model_is_known_to_cost_nothing(server: Server) -> None:
    price = PriceBook().price("local", "smollm2")
    assert price is not None
    assert (price.per_mtok(), price.source) == ({"inputCostPerMTok": 0.0, "outputCostPerMTok": 0.0}, "local")
    assert server.asked == []


def test_a_list_of_today_is_not_fetched_again(server: Server) -> None:
    first = gateway_models()
    assert gateway_models() == first
    assert len(server.asked) == 1


@pytest.mark.parametrize("age", [timedelta(days=2), timedelta(days=-2)], ids=["old", "of the future"])
def test_a_list_of_another_day_is_fetched_again(server: Server, age: timedelta) -> None:
    gateway_models()
    age_kept_list(server, age)
    assert gateway_models().date == datetime.now(UTC).date()
    assert len(server.asked) == 2


def test_without_a_network_the_kept_list_is_used_and_its_date_said(server: Server) -> None:
    gateway_models()
    aged = age_kept_list(server, timedelta(days=40))
    server.answer = hangs_up
    said: list[str] = []
    assert gateway_models(say=said.append) == aged
    assert len(said) == 1
    assert str(aged.date) in said[0]


def test_without_a_network_and_a_kept_list_the_makers_price_is_used_and_that_is_said_once(server: Server) -> None:
    server.answer = hangs_up
    said: list[str] = []
    book = PriceBook(say=said.append)
    price = book.price("gateway", "anthropic/claude-sonnet-4")
    assert price is not None
    assert price.source == "genai-prices"
    assert book.price("gateway", "openai/gpt-5") is not None
    assert len(server.asked) == 1
    assert len(said) == 1
    assert "genai-prices" in said[0]


def test_nobody_listening_is_an_error_that_names_the_address(server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        base = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(InfraError, match=f"{base}/v1/models cannot be read: Connect"):
        gateway_models(base)


DEEP = b'{"data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (says(b""), "did not answer with a list of models"),
        (says(b"<html>sign in</html>"), "did not answer with a list of models"),
        (says(b"\xff\xfe\x00"), "did not answer with a list of models"),
        (says(b"[]"), "did not answer with a list of models"),
        (says({"data": []}), "data: "),
        (says({"data": None}), "data: "),
        (says({"data": [{"name": "no id"}]}), "data.0.id: "),
        (says({"data": [{"id": 7}]}), "data.0.id: "),
        (says({"data": [{"id": ""}]}), "data.0.id: "),
        (says({"data": [{"id": "x" * 10_000}]}), "data.0.id: "),
        (says({"data": [{"id": "a/b", "context_window": "large"}]}), "data.0.context_window"),
        (says(DEEP), "did not answer with a list of models"),
        (says(REST, status=401), "answered 401"),
        (says(b"", status=503), "answered 503"),
        (says(b"", status=302, Location="http://127.0.0.1:1/"), "answered 302"),
        (says(REST, Content_Length="99999"), "cannot be read"),
        (says(b"not gzip", Content_Encoding="gzip"), "cannot be read: DecodingError"),
        (says(gzip.compress(b" " * (17 * 1024**2)), Content_Encoding="gzip"), "more than 16 MiB"),
        (hangs_up, "cannot be read"),
    ],
)
def test_a_useless_answer_is_an_error_and_what_was_kept_stays(
    server: Server, answer: Callable[[BaseHTTPRequestHandler], None], complaint: str
) -> None:
    kept = refresh_models()
    server.answer = answer
    with pytest.raises(InfraError, match=f"{server.base}/v1/models") as caught:
        refresh_models()
    assert complaint in str(caught.value)
    assert len(str(caught.value)) < 500
    assert kept_models() == kept


def test_a_server_that_drips_is_not_waited_for_for_ever(server: Server) -> None:
    enough = threading.Event()

    def drips(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not enough.wait(0.02):
            handler.wfile.write(b" ")

    server.answer = drips
    try:
        with pytest.raises(InfraError, match=r"did not finish its answer in 0\.2 seconds"):
            fetch_models(server.base, seconds=0.2)
    finally:
        enough.set()


def test_a_damaged_file_counts_as_no_list_and_is_replaced(server: Server) -> None:
    refresh_models()
    (file,) = (cache_folder() / "gateway").iterdir()
    file.write_text('{"base": ')
    assert kept_models() is None
    assert gateway_models().find("openai/gpt-5") is not None
    assert kept_models() is not None


def test_a_list_that_cannot_be_kept_is_used_all_the_same_and_that_is_said(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BAKEOFF_CACHE", str(tmp_path / "file"))
    said: list[str] = []
    assert gateway_models(say=said.append).find("openai/gpt-5") is not None
    assert len(said) == 1
    assert "cannot be stored" in said[0]


def test_each_gateway_has_a_list_of_its_own(server: Server) -> None:
    refresh_models()
    assert kept_models(BASE_URL) is None


@pytest.mark.parametrize("given", ["", "/", "/v1", "/v1/"])
def test_the_address_may_end_in_v1_or_not(given: str) -> None:
    assert gateway_base({"AI_GATEWAY_BASE_URL": f"http://127.0.0.1:7{given}"}) == "http://127.0.0.1:7"


def test_without_a_variable_the_gateway_is_vercels() -> None:
    assert gateway_base({}) == gateway_base({"AI_GATEWAY_BASE_URL": ""}) == BASE_URL


@pytest.mark.parametrize("given", ["localhost:3000", "ftp://x", "http://", "http://a\nb", "https://:7"])
def test_an_address_that_is_none_is_an_error_that_names_the_variable(given: str) -> None:
    with pytest.raises(UsageError, match="AI_GATEWAY_BASE_URL="):
        gateway_base({"AI_GATEWAY_BASE_URL": given})


def test_an_address_with_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        gateway_base({"AI_GATEWAY_BASE_URL": "http://me:hush-hush@127.0.0.1:7"})
    assert "hush-hush" not in str(caught.value)


@pytest.mark.parametrize("base", ["http://127.0.0.1:99999", "http://" + "a" * 300])
def test_an_address_that_cannot_be_is_an_error_and_not_a_crash(base: str) -> None:
    with pytest.raises(InfraError, match=base):
        fetch_models(base)


def test_a_senseless_proxy_is_an_error_and_not_a_crash(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1:1")
    with pytest.raises(UsageError, match="proxy"):
        fetch_models(server.base)


def test_the_day_of_a_list_is_in_utc() -> None:
    late = datetime.fromisoformat("2026-11-01T23:30:00-05:00")
    assert GatewayModels(base=BASE_URL, fetched=late, models=(GatewayModel(id="one"),)).date == date(2026, 11, 2)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"BAKEOFF_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/bakeoff"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/user/.cache/bakeoff"),
        ({}, "/home/user/.cache/bakeoff"),
        ({"BAKEOFF_CACHE": "~/mine"}, "/home/user/mine"),
    ],
)
def test_the_cache_folder_is_the_one_asked_for_or_the_systems(
    variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BAKEOFF_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/user", **variables}.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(expected)
    assert os.environ["HOME"] == "/home/user"
