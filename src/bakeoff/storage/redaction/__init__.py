"""Keep secret values out of files and output: everything that is written or printed passes through a `Redactor`.

names       decide which values are secret
forms       spell a secret in every form that is recognised
search      find these forms in data, also where a text was cut
redactor    replace them, in bytes, texts and models

The command line loads this package, so it imports nothing heavy.
"""

from bakeoff.storage.redaction.forms import SHORTEST
from bakeoff.storage.redaction.names import known_secrets, looks_random, secrets_in, secrets_inside, secrets_within
from bakeoff.storage.redaction.redactor import Model, Redactor, with_texts
from bakeoff.storage.redaction.search import CUT

__all__ = [
    "CUT",
    "SHORTEST",
    "Model",
    "Redactor",
    "known_secrets",
    "looks_random",
    "secrets_in",
    "secrets_inside",
    "secrets_within",
    "with_texts",
]
