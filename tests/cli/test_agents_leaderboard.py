"""`bakeoff agents leaderboard` beside damaged runs, and the names of the files that it reads."""

import json
from pathlib import Path

from bakeoff.doors.agents.results.write import result_files
from bakeoff.plan import SubjectSpec

from ..report.runs import plan_of, record_of, write_run
from ..warm_bakeoff import Bakeoff


def write_result(folder: Path, agent: str, solved: int) -> None:
    """Write a run of an agent on 20 exercises, and its result file."""
    plan = plan_of(20, [agent])
    records = [record_of(trial, float(trial.index < solved)) for trial in plan.trials()]
    write_run(folder / "runs" / f"{agent}-run", plan, records)
    results = [{"exercise": f"e{place}", "overallSuccess": place < solved} for place in range(20)]
    about = {"agent": agent, "provider": "p", "timestamp": "2026-01-01T00:00:00.000Z"}
    summary = {"successRate": 5 * solved, "successCount": solved, "totalCount": 20}
    added = {"subject": agent, "run": f"{agent}-run"}
    file = {"metadata": about, "summary": summary, "results": results, "bakeoff": added}
    (folder / f"{agent}.json").write_text(json.dumps(file))


def test_a_run_that_cannot_be_read_is_left_out_with_a_warning_by_both_leaderboards(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    write_result(folder, "a", 15)
    write_result(folder, "b", 9)
    (folder / "runs" / "b-run" / "plan.json").write_text("{")
    both = json.loads(bakeoff("leaderboard", "--json").stdout)
    assert [entry["source"] for entry in both["entries"]] == ["a-run"]
    assert "b-run" in both["unreadable"][0]
    done = bakeoff("agents", "leaderboard", "--json")
    assert done.returncode == 0, done.stderr
    assert [entry["agent"] for entry in json.loads(done.stdout)["entries"]] == ["a"]
    assert "warning: left out: " in done.stderr
    assert "b-run" in done.stderr
    alone = bakeoff("agents", "leaderboard", "results/b.json")
    assert alone.returncode == 2
    assert "b-run" in alone.stderr


def test_result_files_that_would_have_the_same_name_are_numbered() -> None:
    models = ["m/1", "m?1", "m*1"]
    definition = {"name": "mine", "defaultProvider": "p", "install": {"method": "other"}, "command": ["x"]}
    specs = tuple(
        SubjectSpec(kind="cli-agent", name=model, options={"definition": definition, "provider": "p", "model": model})
        for model in models
    )
    plan = plan_of(1, models).with_changes(subjects=specs)
    files = dict(result_files(plan, [record_of(trial, 1.0, started=1e9) for trial in plan.trials()]))
    assert [result.metadata.model for result in files.values()] == models, "no file replaces another"
    first = next(iter(files)).removesuffix(".json")
    assert list(files) == [f"{first}.json", f"{first}-2.json", f"{first}-3.json"]
