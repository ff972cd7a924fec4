"""Text that every file and every request can carry."""

import json
from typing import Any


def well_formed(value: Any) -> Any:
    """The same, with a question mark for each half of a surrogate pair, in texts however deep."""
    match value:
        case str():
            return value.encode(errors="replace").decode()
        case dict():
            return {well_formed(name): well_formed(each) for name, each in value.items()}
        case list():
            return [well_formed(each) for each in value]
    return value


def well_formed_json(text: str) -> str:
    """The same where such halves are spelled as escapes; what is no JSON stays as it is."""
    if "\\ud" not in text.lower():
        return text
    try:
        return json.dumps(well_formed(json.loads(text)))
    except (ValueError, RecursionError):
        return text
