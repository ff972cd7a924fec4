"""What a report must not do in the log of a workflow on GitHub, whose machine obeys any line that holds a command.

`::command::` is one where only blanks stand before it, `##[command]` is one anywhere. Texts from outside reach a line's
beginning as context of a difference, or where a cell of a table is folded.
"""

import re

_COMMAND = re.compile(r"^([ \t]*)(?=::)", re.MULTILINE)


def harmless_in_logs(text: str) -> str:
    """The same with a mark before each command."""
    marked = _COMMAND.sub(lambda blanks: f"{blanks.group(1)[:-1]}·", text)
    return marked.replace("##[", "##\\[")


def harmless_json(text: str) -> str:
    """JSON that says the same; its lines never begin with a colon."""
    return text.replace("##[", "#\\u0023[")
