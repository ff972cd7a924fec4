"""Clean the JSON texts that models write."""

import json

from bakeoff._kernel.json import clean


def well_formed_json(text: str) -> str:
    """Return the JSON text without escapes of lone surrogates. A text that is not JSON is returned unchanged."""
    if "\\ud" not in text.lower():
        return text
    try:
        return json.dumps(clean(json.loads(text)))
    except (ValueError, RecursionError):
        return text
