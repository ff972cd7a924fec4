"""Real agents, as their makers publish them, against a provider on loopback: once they solve it, once they give up.

They are looked for in the folders of BAKEOFF_AGENTS, which is written like PATH; without it there is nothing to test.
"""

import os
import shutil
from pathlib import Path

import pytest

from bakeoff.record import Verdict

from .small_tracks import DOUBLE, write_track
from .speaking_provider import INPUT, OUTPUT, SpeakingProvider, Turn
from .test_runs import carried_out, outcome, planned

CANARY = "sk-canary-5f4e3d2c1b0a9988"
SOLVE = "printf 'def double(number):\\n    return 2 * number\\n' > double.py"
FOLDERS = os.environ.get("BAKEOFF_AGENTS", "")
SUBMIT = Turn(tool="bash", arguments={"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"})
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
SHELLS = {
    ("claude", "anthropic", "claude-sonnet-4-5"): [
        Turn(tool="Bash", arguments={"command": SOLVE, "description": "write"})
    ],
    ("codex", "openai", "gpt-5"): [Turn(tool="exec_command", arguments={"cmd": SOLVE})],
    ("opencode", "anthropic", "claude-sonnet-4-5"): [
        Turn(tool="bash", arguments={"command": SOLVE, "description": "write"})
    ],
    ("opencode", "openai", "gpt-5-mini"): [Turn(tool="bash", arguments={"command": SOLVE, "description": "write"})],
    ("qwen", "openai", "tiny"): [Turn(tool="run_shell_command", arguments={"command": SOLVE, "is_background": False})],
    ("mini", "openai", "openai/gpt-4o"): [Turn(tool="bash", arguments={"command": SOLVE}), SUBMIT],
    ("aider", "openai", "openai/gpt-4o"): [Turn(say=EDIT)],
}
PRESENT = [key for key in SHELLS if FOLDERS and shutil.which(key[0], path=FOLDERS)]

if PRESENT:

    @pytest.mark.timeout(240)
    @pytest.mark.parametrize("solving", [True, False], ids=["solves", "gives up"])
    @pytest.mark.parametrize(("agent", "provider", "model"), PRESENT)
    async def test_an_agent_works_in_its_sandbox_and_is_metered(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str, provider: str, model: str, solving: bool
    ) -> None:
        track = write_track(tmp_path / "track", double=DOUBLE)
        turns = [*SHELLS[agent, provider, model]] if solving else [SUBMIT] if agent == "mini" else []
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PATH", f"{FOLDERS}{os.pathsep}{os.environ['PATH']}")
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
        with SpeakingProvider(turns) as speaking:
            for family, end in (("OPENAI", "/v1"), ("ANTHROPIC", "")):
                monkeypatch.setenv(f"{family}_API_KEY", CANARY)
                monkeypatch.setenv(f"{family}_BASE_URL", speaking.url + end)
            plan = planned(track, agent, models=[model], providers=[provider], timeout=100.0)
            [record] = (await carried_out(plan, tmp_path)).values()
        told = (record.failure, record.scores, record.transcript)
        assert record.verdict is (Verdict.PASS if solving else Verdict.FAIL), told
        assert outcome(record)["testSuccess"] is solving
        answered = speaking.answered
        assert answered > 0
        assert (record.spent.requests, record.spent.input) == (answered, answered * INPUT), told
        assert record.spent.output == answered * OUTPUT
        assert speaking.keys <= {CANARY, f"Bearer {CANARY}"}
        written = [path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()]
        assert not any(CANARY.encode() in content for content in written)
