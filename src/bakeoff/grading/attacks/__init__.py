"""The family of the `cheat` subject: every attack that we know of, all of which must fail.

`python`, `typescript` (in Jest) and `vitest` have solutions that attack the tests from inside their process, and
`workspace` has what an agent can do to the files around its solution. `make hostile` runs all of them in every sandbox.
"""

import hashlib
from collections.abc import Mapping

from bakeoff.grading.attacks.catalogue import FAMILIES, Attack, HostileScript, HostileSolution
from bakeoff.grading.attacks.python import PYTHON
from bakeoff.grading.attacks.typescript import TYPESCRIPT
from bakeoff.grading.attacks.vitest import VITEST
from bakeoff.grading.attacks.workspace import WORKSPACE
from bakeoff.grading.cases import GradedCase

__all__ = [
    "ATTACKS",
    "FAMILIES",
    "NAMES",
    "SAMPLE",
    "SLOW",
    "Attack",
    "HostileScript",
    "HostileSolution",
    "attack_on",
    "attacks_in_turn",
    "attacks_on",
    "solution_in_turn",
]

ATTACKS: tuple[HostileSolution | HostileScript, ...] = (*WORKSPACE, *PYTHON, *TYPESCRIPT, *VITEST)
"""Every attack. A name stands for one attack in each language."""

_SYNONYMS = {"patch-expect": "patch-assertions"}
NAMES = (*dict.fromkeys(attack.name for attack in ATTACKS), *_SYNONYMS)

SLOW = frozenset({"loop-forever"})
"""Attacks that take as long as the tests may take. `cheat` tries them only when they are named."""

SAMPLE = ("edit-tests", "conftest", "forged-report", "exit-early", "patch-assertions", "read-expected", "claim-all")
"""Attacks of different families, for a quick look."""


def attack_on(case: GradedCase, name: str) -> HostileSolution | HostileScript | None:
    """Return the attack of this name on a case, or None if there is none in its language. Scripts run anywhere."""
    named = [attack for attack in ATTACKS if attack.name == _SYNONYMS.get(name, name)]
    return next((attack for attack in named if attack.fits(case) or isinstance(attack, HostileScript)), None)


def attacks_on(case: GradedCase) -> list[HostileSolution | HostileScript]:
    """Return the attacks on the language of a case."""
    return [attack for attack in ATTACKS if attack.fits(case)]


def solution_in_turn(case: GradedCase) -> HostileSolution | None:
    """Return a hostile solution for a case, always the same for the same case; None for an unknown language."""
    fitting = [each for each in attacks_on(case) if isinstance(each, HostileSolution) and each.name not in SLOW]
    number = int(hashlib.sha256(case.name.encode()).hexdigest(), 16)
    return fitting[number % len(fitting)] if fitting else None


def attacks_in_turn(cases: Mapping[str, GradedCase]) -> dict[str, str]:
    """Return the name of an attack for each case, all of them equally often, and only such as fit its language."""
    used = dict.fromkeys(NAMES, 0)
    chosen: dict[str, str] = {}
    for key, case in cases.items():
        fitting = [attack.name for attack in attacks_on(case) if attack.name not in SLOW]
        chosen[key] = min(fitting, key=used.__getitem__)
        used[chosen[key]] += 1
    return chosen
