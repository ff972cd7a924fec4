import unicodedata
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class Person:
    given: str
    family: str

    @property
    def key(self) -> tuple[str, str]:
        return fold(self.given), fold(self.family)


def short_names(names: list[str]) -> list[str]:
    people = [read(name) for name in names]
    how_many = Counter(person.key for person in people)
    seen: Counter[tuple[str, str]] = Counter()
    shorts = []
    for person in people:
        seen[person.key] += 1
        shorts.append(numbered(person, seen[person.key]) if how_many[person.key] > 1 else short(person, people))
    return shorts


def read(name: str) -> Person:
    words = unicodedata.normalize("NFC", name).split()
    if not words:
        raise ValueError("a name cannot be empty")
    return Person(words[0], words[-1] if len(words) > 1 else "")


def fold(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def numbered(person: Person, number: int) -> str:
    return f"{person.given} {person.family} {number}" if person.family else f"{person.given} {number}"


def short(person: Person, people: list[Person]) -> str:
    others = [other for other in people if other is not person and fold(other.given) == fold(person.given)]
    if not others or not person.family:
        return person.given
    for length in range(1, len(person.family)):
        start = fold(person.family[:length])
        if not any(fold(other.family).startswith(start) for other in others):
            return f"{person.given} {person.family[:length]}."
    return f"{person.given} {person.family}"
