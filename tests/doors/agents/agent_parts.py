"""Script what a model has real agents do, in the words of their tools, and the environment of a user who runs them."""

import json
import os
from dataclasses import dataclass

from genai_prices import Usage, calc_price

from .speaking_provider import INPUT, OUTPUT, SpeakingProvider, Turn

CANARY = "sk-canary-5f4e3d2c1b0a9988"
SOLVE = "printf 'def double(number):\\n    return 2 * number\\n' > double.py"
EDIT = """\
double.py
```python
<<<<<<< SEARCH
    pass
=======
    return 2 * number
>>>>>>> REPLACE
```
"""


@dataclass(frozen=True)
class Part:
    """Choose whether the model has an agent solve the exercise, or do nothing."""

    agent: str
    provider: str
    model: str
    solve: Turn
    end: tuple[Turn, ...] = ()
    by_itself: Turn | None = None  # instead of `solve`, where the agent has other tools for its own model

    def turns(self, *, solving: bool = True, model: bool = True) -> list[Turn]:
        solve = self.solve if model else self.by_itself or self.solve
        return [solve, *self.end] if solving else [*self.end]

    def price(self, models: list[str]) -> float:
        """By the list alone, without anything of ours; some agents ask a second model for a title and the like."""
        usage = Usage(input_tokens=INPUT, output_tokens=OUTPUT)
        return float(sum(calc_price(usage, model, provider_id=self.provider).total_price for model in models))


SUBMIT = Turn(tool="bash", arguments={"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"})
BASH = Turn(tool="bash", arguments={"command": SOLVE, "description": "write"})
SCRIPT = f"const r = await tools.exec_command({{cmd: {json.dumps(SOLVE)}}}); text(JSON.stringify(r))"
PARTS = [
    Part(
        "claude",
        "anthropic",
        "claude-sonnet-4-5",
        Turn(tool="Bash", arguments={"command": SOLVE, "description": "write"}),
    ),
    Part(
        "codex",
        "openai",
        "gpt-5",
        Turn(tool="exec_command", arguments={"cmd": SOLVE}),
        by_itself=Turn(tool="exec", custom=SCRIPT),
    ),
    Part(
        "qwen",
        "openai",
        "gpt-4o",
        Turn(tool="run_shell_command", arguments={"command": SOLVE, "is_background": False}),
    ),
    Part("opencode", "anthropic", "claude-sonnet-4-5", BASH),
    Part("opencode", "openai", "gpt-5-mini", BASH),
    Part("mini", "openai", "openai/gpt-4o", Turn(tool="bash", arguments={"command": SOLVE}), (SUBMIT,)),
    Part("aider", "openai", "openai/gpt-4o", Turn(say=EDIT)),
    Part("gemini", "google", "gemini-2.5-pro", Turn(tool="run_shell_command", arguments={"command": SOLVE})),
]


def user_environment(speaking: SpeakingProvider, path: str, *, key: bool = True) -> dict[str, str]:
    """A user's own, with a key that leads to the provider on loopback."""
    env = {name: value for name, value in os.environ.items() if not _is_the_machines(name)}
    return env | {"PATH": path, "NO_COLOR": "1"} | _pointing_at(speaking.url, key=key)


def _is_the_machines(name: str) -> bool:
    return name.upper().endswith("_PROXY") or name.startswith(("OPENAI_", "ANTHROPIC_", "GEMINI_", "CLAUDE"))


def _pointing_at(url: str, *, key: bool) -> dict[str, str]:
    ends = {"OPENAI": "/v1", "ANTHROPIC": "", "GEMINI": ""}
    bases = {f"{family}_BASE_URL": url + end for family, end in ends.items()}
    return bases | ({f"{family}_API_KEY": CANARY for family in ends} if key else {})
