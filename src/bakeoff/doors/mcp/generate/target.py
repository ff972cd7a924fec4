"""Write generated cases to a new configuration, without keys, or add them to an existing one."""

import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bakeoff._kernel.files import PUBLIC, write_atomically
from bakeoff.doors.mcp.config import check_config, read_suite
from bakeoff.doors.mcp.examples import SCHEMA_NAME, published_schema
from bakeoff.doors.mcp.servers import redactor_of
from bakeoff.mcp import ServerSpec
from bakeoff.storage.redaction import SHORTEST, known_secrets

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DraftTarget:
    """The file that cases are written to, and the cases it has already."""

    file: Path | None
    text: str | None = None
    names: tuple[str, ...] = ()
    prompts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, file: Path | None) -> Self:
        """Read the file, if there is one."""
        if file is None or not file.exists():
            return cls(file)
        cases = read_suite(file).config.testCases
        names = tuple(case.name for case in cases if case.name)
        return cls(file, file.read_bytes().decode(), names, frozenset(case.prompt for case in cases))

    def write(self, text: str, environment: Mapping[str, str], say: Say, like: Path | None = None) -> None:
        """Write the text, with the permissions of `like`, if it is a valid configuration."""
        assert self.file is not None
        self.file.parent.mkdir(parents=True, exist_ok=True)  # a path of an import begins there
        check_config(text, self.file, environment)
        mode = PUBLIC if like is None else stat.S_IMODE(like.stat().st_mode)
        write_atomically(self.file, text.encode(), mode)
        say(f"{'added to' if self.text is not None else 'wrote'} {self.file}")
        schema = self.file.with_name(SCHEMA_NAME)
        if self.text is None and not schema.exists():  # the first line of the new file names it
            write_atomically(schema, published_schema().encode(), PUBLIC)
            say(f"wrote {schema}")


def keys_as_variables(text: str, specs: Sequence[ServerSpec], say: Say) -> tuple[str, dict[str, str]]:
    """Replace keys in a new configuration, which may be committed, by variables; return both."""
    own = {f"{spec.name}_{name}": value for spec in specs for name, value in spec.shown_to_nobody.items()}
    keys = {value: re.sub(r"\W", "_", name).upper() for name, value in own.items() if len(value) >= SHORTEST}
    keys |= {value: name for name, value in known_secrets().items() if name.isidentifier() and len(value) >= SHORTEST}
    found: dict[str, str] = {}
    for value in sorted(keys, key=len, reverse=True):
        if value in text:
            text = text.replace(value, f"${{{keys[value]}}}")
            found[keys[value]] = value
            if keys[value] not in os.environ:
                say(f"note: set {keys[value]}, in the environment or in .env: a configuration holds no keys")
    return redactor_of(specs).text(text), found
