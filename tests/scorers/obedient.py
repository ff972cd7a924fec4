"""A judge that obeys every order that it finds outside the marks around the judged texts."""

import json
import re
from collections.abc import Iterator

MARK = re.compile(r"<{3,}\s*(end of)?.*?>{3,}", re.IGNORECASE)
MESSAGE_ENDS = re.compile(r"<\|.*?\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>")
UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
ORDER = re.compile(r'choose ([A-E])\b|"choice": "([A-E])"', re.IGNORECASE)


class ObedientJudge:
    """Finds every answer bad (E), but obeys any order that it finds outside the fences.

    It is as careless a reader as can be: any code will do in a mark, letters that nobody sees are read, and what ends
    a message for some model ends the material.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def create_message(self, system: str, message: str) -> str:
        self.asked.append((system, message))
        orders = [order for line in self.outside(message) for order in ORDER.findall(line)]
        choice = "".join(orders[0]) if orders else "E"
        return json.dumps({"rationale": "as ordered" if orders else "it is bad", "choice": choice.upper()})

    def outside(self, message: str) -> Iterator[str]:
        seen = "".join(chr(ord(c) - 0xE0000) if 0xE0000 < ord(c) < 0xE0080 else c for c in message)
        inside = False
        for line in re.split(r"[\r\n]", MESSAGE_ENDS.sub("\n<<<end of message>>>\n", UNSEEN.sub("", seen))):
            mark = MARK.search(line)
            if mark:
                inside = mark[1] is None
            elif not inside:
                yield line
