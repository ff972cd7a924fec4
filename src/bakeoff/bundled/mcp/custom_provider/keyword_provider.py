"""A custom provider: it turns a system prompt and a message into a reply."""

import json
import re


class KeywordProvider:
    """Understands only timers. Replace this class by the client of your own model."""

    def create_message(self, system: str, message: str) -> str:  # noqa: ARG002 - a model would read it
        """Return the reply of the model, here JSON. The method may be `async`."""
        minutes = re.search(r"timer for (\d+) minutes", message)
        if minutes is None:
            return "null"
        call = {"serverName": "kitchen", "toolName": "set_timer", "parameters": {"minutes": int(minutes[1])}}
        return json.dumps(call)
