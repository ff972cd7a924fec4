"""What the parts of the campaign are asked to do."""

import os
import sys
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Options:
    """Hold the choices of one campaign. `sample` is the bounded form for continuous integration."""

    sample: bool = False
    quiet: bool = False
    rungs: tuple[str, ...] = ()
    graders: tuple[str, ...] = ()
    attacks: tuple[str, ...] = ()
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    seed: int = 1
    scale: float = 1.0  # of what the long form does

    @property
    def user(self) -> str:
        return "root" if os.geteuid() == 0 else "user"

    def say(self, text: str) -> None:
        """Print progress, unless quiet is asked for."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)
