"""Texts that a judge is shown as data: fenced off, so that nothing in them can pass for an instruction.

The code in the marks is a hash of the texts between them, so nobody can write a text that holds its own code; and it is
the same whenever the same is asked, so that recordings are found again.
"""

import re
from collections.abc import Mapping

from bakeoff._kernel.model import fingerprint

_GAP = "[\u200c\u200d]*"  # joiners are part of some scripts, and must not hide a mark either
_MARKS = re.compile(
    rf"<{_GAP}\||\|{_GAP}>"  # <|im_end|> and its like end a message for models that speak ChatML
    rf"|<(?:{_GAP}<){{2,}}|>(?:{_GAP}>){{2,}}"  # our own
    r"|<<(?=/?SYS)|(?<=SYS)>>|\[(?=/?INST\])"  # Llama's
    r"|<(?=/?s>|(?:start|end)_of_turn>|/?system>|bos>|eos>)",
    re.IGNORECASE,
)
_HARMLESS = str.maketrans({"<": "‹", ">": "›", "[": "⁅", "|": "¦", "\u200c": None, "\u200d": None})
# What nobody sees and a model reads: zero-width and direction marks, and letters from the block of tags.
_UNSEEN = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")


def neutral(text: str) -> str:
    """The text with everything that looks like the mark of a fence, or of a message, turned into look-alikes."""
    return _MARKS.sub(lambda found: found[0].translate(_HARMLESS), _UNSEEN.sub("", text))


def shortened(text: str, most: int) -> str:
    """Beginning and end of a long text, with a note of what is left out."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def code_of(*parts: object) -> str:
    return fingerprint(*parts)[:24]


def fenced(sections: Mapping[str, str], code: str) -> str:
    """The texts, each between marks of its own."""
    return "\n\n".join(
        f"<<<{name} {code}>>>\n{neutral(text)}\n<<<end of {name} {code}>>>" for name, text in sections.items()
    )
