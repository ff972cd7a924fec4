"""A model that understands tools by the words of their descriptions, and a server whose descriptions can be edited."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .conftest import SERVERS

PROVIDER = '''
import json, re

class Reader:
    """Call the first tool whose description has most of the words of a message."""

    def create_message(self, system, message):
        words = set(re.findall(r"[a-z]{4,}", message.lower()))
        found = re.findall(r"### Tool: (\\S+)\\n(.*)\\nParameters: ", system)
        known = [(len(words & set(re.findall(r"[a-z]{4,}", text.lower()))), name) for name, text in found]
        best = max(known, key=lambda each: each[0])
        if not best[0]:
            return "null"
        return json.dumps({"serverName": "words", "toolName": best[1], "parameters": {}})
'''
DESCRIPTIONS = {"archive": "Handle an item.", "remove": "Handle an item.", "weather": "The forecast of a place."}
BETTER = "Delete messages for good: destroy, erase or wipe them."
PROMPTS = {
    "remove": [
        "Delete it.",
        "Erase that.",
        "Wipe this.",
        "Destroy them.",
        "Delete mine.",
        "Erase ours.",
        "Wipe yours.",
    ],
    "weather": ["The forecast?", "Which forecast?", "My forecast!"],
}


def write_words(
    folder: Path,
    descriptions: Mapping[str, str],
    prompts: Mapping[str, Sequence[str]] = PROMPTS,
    **fields: Any,
) -> Path:
    """Write a configuration with one case for each prompt, the server's tools and the provider of the model."""
    (folder / "reader.py").write_text(PROVIDER)
    (folder / "tools.json").write_text(json.dumps(descriptions))
    cases = [
        {
            "name": re.sub(r"\W+", "-", prompt).strip("-"),
            "prompt": prompt,
            "expectedOutput": {"serverName": "words", "toolName": tool, "parameters": {}},
        }
        for tool, asked in prompts.items()
        for prompt in asked
    ]
    usual: dict[str, Any] = {
        "testRound": 1,
        "passThreshold": 1,
        "modelsToTest": ["words:reader"],
        "providers": {"words": "reader:Reader"},
        "testCases": cases,
        "mcpServers": [
            {
                "name": "words",
                "command": sys.executable,
                "args": [str(SERVERS / "words.py"), str(folder / "tools.json")],
            }
        ],
    }
    path = folder / "mcp-testing-framework.yaml"
    path.write_text(json.dumps({**usual, **fields}))
    return path
