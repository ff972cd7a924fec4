"""A run that is killed half way: what is finished is kept, and only the rest is done."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from bakeoff.record import Record
from bakeoff.rundir import RunFolder

from .small_tracks import DOUBLE, PAIR, RIGHT_DOUBLE, agent_file, overwrite, write_track

BAKEOFF = Path(sys.executable).with_name("bakeoff")


def records_in(folder: Path) -> list[Record]:
    return [entry for entry in RunFolder(folder).entries() if isinstance(entry, Record)]


def test_a_run_that_was_killed_goes_on_without_losing_or_repeating_a_trial(tmp_path: Path) -> None:
    write_track(tmp_path / "track", double=DOUBLE, pair=PAIR)
    good = agent_file(tmp_path, "good", f"[ -f double.py ] && {overwrite('double.py', RIGHT_DOUBLE)}true")
    idle = agent_file(tmp_path, "idle", "true")
    words = [
        str(BAKEOFF),
        "agents",
        "run",
        "--exercises",
        "track",
        "--agent",
        "good",
        "--agent",
        "idle",
        "--rounds",
        "2",
    ]
    words += ["--agent-file", str(good), "--agent-file", str(idle), "--jobs", "1", "--no-open", "--show-progress"]
    env = {**os.environ, "NO_COLOR": "1"}
    with subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        shown = 0
        for line in process.stderr:  # a change is shown when its agent has done its part: the second is in round two
            shown += line.startswith("--- good, double")
            if shown == 2:
                process.kill()
    [folder] = (tmp_path / "results" / "runs").iterdir()
    before = records_in(folder)
    assert 4 <= len(before) < 8
    done = subprocess.run(
        [BAKEOFF, "resume", "--json"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 1, done.stderr
    after = records_in(folder)
    assert after[: len(before)] == before
    assert Counter(record.attempt_key for record in after).most_common(1)[0][1] == 1
    assert len(after) == 8
    scores = {each["subject"]: each["score"] for each in json.loads(done.stdout)["summary"]["subjects"]}
    assert scores == {"good": 0.5, "idle": 0.0}
    assert json.loads((tmp_path / "results" / "latest.json").read_text())["metadata"]["agent"] == "idle"
