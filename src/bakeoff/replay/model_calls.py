"""Keys for calls of models that a subject or a scorer makes.

The key holds what was asked (model, address, settings, messages, tools, output schema) and for which trial (case,
subject, round), so that two trials never share an answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bakeoff._kernel.model import fingerprint
from bakeoff.protocols import Task
from bakeoff.replay.store import Key

# Fields of messages and their parts that differ between runs or servers and are no part of the question.
_VOLATILE = {
    "timestamp",
    "run_id",
    "conversation_id",
    "usage",
    "provider_name",
    "provider_url",
    "provider_details",
    "provider_response_id",
    "model_name",
    "metadata",
    "id",
    "signature",
    "failed_attempts",
    "history_digest",
    "workspace_ref",
}
_IGNORED_SETTINGS = {"timeout", "request_timeout", "max_retries"}  # they do not change the answer


def model_call_key(
    task: Task,
    *,
    model: str,
    endpoint: str,
    settings: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    output: Mapping[str, Any] | None,
) -> Key:
    """Return the key of one call. Messages, tools and the output schema are given as JSON data."""
    asked = {
        "subject": task.subject,
        "case": task.case_id,
        "round": task.round,
        "model": model,
        "endpoint": endpoint,
        "settings": {name: value for name, value in settings.items() if name not in _IGNORED_SETTINGS},
        "messages": [
            {**_lasting(message), "parts": [_lasting(part) for part in message["parts"]]} for message in messages
        ],
        "tools": list(tools),
        "output": output,
    }
    return Key("", asked, fingerprint(asked))


def _lasting(data: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the volatile fields. Keep the content, which may hold fields of the same names."""
    return {name: value for name, value in data.items() if name not in _VOLATILE and value is not None}
