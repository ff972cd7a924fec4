"""Keep secrets out of files and output, which all pass through a `Redactor`.

names       decide which values are secret
forms       spell a secret in every form that is recognised
redactor    find these forms, also where a text was cut, and replace them in bytes, texts and models

The command line loads this package, so it imports little.
"""

from bakeoff.storage.redaction.forms import SHORTEST
from bakeoff.storage.redaction.names import known_secrets, looks_random, secrets_in, secrets_inside, secrets_within
from bakeoff.storage.redaction.redactor import CUT, Model, Redactor, with_texts

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
