"""Keys that an application sends stay out of recordings, and calls are found again without them."""

import base64
import json
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest

from bakeoff.replay.process import replaying
from bakeoff.storage.redaction import Redactor

from ..models.loopback import KEY, Act, Loopback
from .conftest import Replay
from .sdk_calls import (
    FOLDER,
    QUESTION,
    recordings,
)

CANARY = "canary-5f1d9c27e8b3"


@pytest.fixture
def leaky(provider: Loopback) -> Callable[[], None]:
    """A call with a key in each place where one may stand, to a provider that repeats it in all it says."""
    hidden = base64.b64encode(f"x{CANARY}y".encode()).decode()
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": f"{CANARY} {hidden}"}}]}
    echoed = {"set-cookie": f"k={CANARY}", "x-request-id": CANARY}
    provider.plan = lambda _: Act(body={"model": "m", "id": CANARY, **answer}, headers=echoed)

    def ask(key: str = CANARY) -> None:
        with httpx2.Client() as client:
            client.post(
                f"{provider.url.replace('//', f'//user:{key}@')}/v1/chat/completions?key={key}&page=2",
                json={"model": "m", "user": key, "nested": json.dumps({"key": key, "b64": hidden})},
                headers={"authorization": f"Bearer {key}", "x-api-key": key, "cookie": key, "x-goog-api-key": key},
            )

    return ask


def test_a_recording_holds_no_key_wherever_it_stood(leaky: Callable[[], None], provider: Loopback) -> None:
    with replaying("record", FOLDER, Redactor({})):  # nobody told us of this key: it came with the request
        leaky()
    [path] = recordings()
    written = path.read_text()
    forms = [
        CANARY,
        CANARY.encode().hex(),
        *(base64.b64encode(f"{'x' * n}{CANARY}".encode()).decode()[4:-4] for n in range(3)),
    ]
    assert [form for form in forms if form in written] == []
    assert "[redacted" in written
    assert "page=2" in written
    assert "set-cookie" not in written


def test_a_recording_is_found_with_another_key(provider: Loopback, replay: Replay) -> None:
    def ask(key: str) -> str:
        with openai.OpenAI(base_url=f"{provider.url}/v1", api_key=key, max_retries=0) as client:
            return (
                client.chat.completions.create(model="m", messages=QUESTION, user=key).choices[0].message.content or ""
            )

    with replay("record"):
        ask(KEY)
    provider.stop()
    with replay("strict"):
        assert ask("sk-another-key-of-a-colleague") == "yes"


def ask_with_a_server_of_tools(url: str, key: str) -> str:
    server: Any = {
        "type": "mcp",
        "server_label": "crm",
        "server_url": "https://crm.example/mcp",
        "authorization": f"Bearer {key}",
        "headers": {"X-Api-Key": f"other-{key}"},
    }
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        return client.responses.create(model="m", input="Who is Ann?", tools=[server]).output_text


def test_a_key_that_the_application_hands_on_is_in_no_recording_and_another_finds_it(
    provider: Loopback, replay: Replay
) -> None:
    provider.plan = lambda request: Act(say=f"told {'crm-secret-5b1e77' in str(request.body)}")
    with replay("record"):
        said = ask_with_a_server_of_tools(provider.url, "crm-secret-5b1e77")
    assert said == "told True"
    [kept] = recordings()
    assert "crm-secret" not in kept.read_text()
    provider.stop()
    with replay("strict"):
        assert ask_with_a_server_of_tools(provider.url, "crm-secret-5b1e77") == said
        assert ask_with_a_server_of_tools(provider.url, "crm-of-a-colleague") == said
