"""Servers that ask their client back, and the resources that they list."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.mcp import ServerSpec

from .conftest import SERVERS, Opening

pytestmark = pytest.mark.full

Asking = Callable[..., ServerSpec]


@pytest.fixture
def asking() -> Asking:
    def make(**fields: Any) -> ServerSpec:
        argv = {"name": "asking", "command": sys.executable, "args": (str(SERVERS / "asking.py"),)}
        return ServerSpec.model_validate({**argv, **fields})

    return make


YES = {"match": "REALLY want", "content": {"sure": True, "reason": "spring"}}


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([YES], "deleted: True spring"),
        ([{"match": "something else", "action": "cancel"}, YES], "deleted: True spring"),
        ([{"action": "decline"}, YES], "kept, because of decline"),
        ([{"action": "cancel"}], "kept, because of cancel"),
        ([{"content": {"sure": False}}], "kept after all"),
    ],
)
async def test_a_question_to_a_person_is_answered_by_the_first_answer_that_matches(
    asking: Asking, opened: Opening, answers: list[dict[str, Any]], said: str
) -> None:
    async with opened(asking(elicitation=answers)) as hub:
        result = await hub.call("asking", "delete_all", {})
    assert (result.is_error, result.text) == (False, said)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([{"match": "other"}], "no elicitation answer of the configuration matches 'Do you really want"),
        ([{"content": {"reason": "x"}}], "the elicitation answer of the configuration: 'sure' is a required property"),
        ([], ""),
    ],
)
async def test_a_question_without_a_fitting_answer_is_an_error_that_says_so(
    asking: Asking, opened: Opening, answers: list[dict[str, Any]], said: str
) -> None:
    async with opened(asking(elicitation=answers)) as hub:
        result = await hub.call("asking", "delete_all", {})
    assert result.is_error
    assert said in result.text


async def test_a_server_that_asks_for_a_models_text_gets_that_of_the_configuration(
    asking: Asking, opened: Opening
) -> None:
    async with opened(asking(sampling=[{"match": "summarise: a", "reply": "short"}])) as hub:
        assert (await hub.call("asking", "summarise", {"text": "a b c"})).text == "summary: short"
        refused = await hub.call("asking", "summarise", {"text": "x"})
    assert refused.is_error
    assert "no sampling answer of the configuration matches 'Summarise: x'" in refused.text


async def test_a_server_that_promises_resources_and_knows_no_list_of_them_offers_none(
    opened: Opening, tmp_path: Path
) -> None:
    script = tmp_path / "promising.py"
    script.write_text(
        "import json, sys\n"
        "info = {'protocolVersion': '2025-06-18', 'serverInfo': {'name': 'p', 'version': '1'},\n"
        "        'capabilities': {'tools': {}, 'resources': {}, 'prompts': {}}}\n"
        "known = {'initialize': info, 'tools/list': {'tools': []},\n"
        "         'resources/list': {'resources': [{'uri': 'a://1', 'name': 'one'}]}}\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line)\n"
        "    if 'id' in message:\n"
        "        result = known.get(message['method'])\n"
        "        error = {'code': -32601, 'message': 'Method not found'}\n"
        "        answer = {'error': error} if result is None else {'result': result}\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], **answer}), flush=True)\n"
    )
    async with opened(ServerSpec(name="p", command=sys.executable, args=(str(script),))) as hub:
        (offers,) = (await hub.offers()).values()
    assert ([*offers.resources, *offers.resourceTemplates], offers.prompts) == (["a://1"], {})
