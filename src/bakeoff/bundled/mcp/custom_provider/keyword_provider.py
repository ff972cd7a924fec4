"""A provider of one's own: whatever turns a system prompt and a message into a reply."""

import json
import re


class KeywordProvider:
    """Understands timers and nothing else; stands for the client of your own model."""

    def create_message(self, system: str, message: str) -> str:  # noqa: ARG002 - a model would read it
        """May be `async` as well. The reply is what the model says, here JSON."""
        minutes = re.search(r"timer for (\d+) minutes", message)
        if minutes is None:
            return "null"
        call = {"serverName": "kitchen", "toolName": "set_timer", "parameters": {"minutes": int(minutes[1])}}
        return json.dumps(call)
