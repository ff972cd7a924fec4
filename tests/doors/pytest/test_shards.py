"""`--eval-shard`: parts of the evals of a session, which together are the whole."""

from pathlib import Path

import pytest

from bakeoff.cli.merge import MergeFlags, run_merge
from bakeoff.errors import UsageError
from bakeoff.report.suites.eval_file import merge_files, read_eval_file
from bakeoff.storage.ledger import ShardsHere

from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

EVALS = """
def partly(given): return 0.0 if given.input == 3 else 1.0

@pytest.mark.parametrize("tone", ["kind", "short"])
@eval_suite(data=rows(*range(7)), scorers=[partly])
def test_suite(case, tone):
    return case.input

async def test_single(to_eval):
    await to_eval("x", output="x", expected="x", scorer=Exact())

def test_plain():
    pass
"""
N = 3


def written(project: SmallProject, *options: str) -> Path:
    """Run the evals, and return their file."""
    file = project.path / f"{'-'.join(options).replace('/', '-') or 'whole'}.json"
    project.run("--eval-json", str(file), *options)
    return file


def node_ids(file: Path) -> set[str]:
    return {outcome.nodeid for outcome in read_eval_file(file).outcomes}


def test_shards_are_the_whole_in_parts_and_keep_the_sets_of_parameters_of_a_case_together(
    project: SmallProject,
) -> None:
    project.write(EVALS)
    whole = written(project)
    parts = [written(project, f"--eval-shard={number}/{N}") for number in range(1, N + 1)]
    found = [node_ids(part) for part in parts]
    assert set().union(*found) == node_ids(whole)
    assert [len(part) for part in found] == [6, 5, 4]
    assert all(name.replace("kind", "short") in part for part in found for name in part)
    merged = project.path / "merged.json"
    run_merge(files=parts, wanted=MergeFlags(output=str(merged), shards=N))
    [collection] = {shards.collection for part in parts if (shards := read_eval_file(part).planned.shards)}
    here = ShardsHere(of=N, numbers=tuple(range(1, N + 1)), collection=collection)
    assert read_eval_file(merged).planned.shards == here
    assert without_times(merged) == without_times(whole)


def without_times(file: Path) -> dict[str, object]:
    return read_eval_file(file).numbers.model_dump(exclude={"seconds", "timing"})


def test_tests_that_are_no_evals_are_in_every_shard_and_others_are_deselected(project: SmallProject) -> None:
    project.write(EVALS)
    seen = project.run("--eval-shard", "3/3")
    assert seen.counts() == {"passed": 5, "deselected": 11}
    assert project.run("--eval-shard", "2/3", "-k", "plain").counts() == {"passed": 1, "deselected": 15}
    gated = project.run("--eval-shard", "2/3", "--eval-fail-under=0", "--eval-allow-undecided=100%")
    assert "The gate passed for shard 2 of 3 alone (`bakeoff merge` decides the whole)." in gated.text
    assert (
        "--eval-fail-under passed: for shard 2 of 3 alone (`bakeoff merge` decides the whole): mean score" in gated.text
    )


def test_shards_of_different_evals_are_not_merged(project: SmallProject) -> None:
    project.write(EVALS)
    first = written(project, "--eval-shard=1/2")
    for other in (written(project, "--eval-shard=2/2", "-k", "kind"), written(project, "--eval-shard=2/2", "-m", "x")):
        with pytest.raises(UsageError, match=r"are shards of different evals: run all with the same paths, -k"):
            merge_files([first, other])


def test_workers_tell_of_which_evals_their_shard_is(project: SmallProject) -> None:
    project.write(EVALS)
    alone = read_eval_file(written(project, "--eval-shard=1/2")).planned.shards
    project.run_apart("-p", "xdist", "-n", "1", "--eval-shard=1/2", "--eval-json=workers.json")
    assert alone is not None
    assert alone.collection
    assert read_eval_file(project.path / "workers.json").planned.shards == alone


def test_the_variable_chooses_a_shard_and_what_is_no_shard_is_refused(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(EVALS)
    monkeypatch.setenv("BAKEOFF_SHARD", "2/3")
    assert project.run().counts()["deselected"] > 0
    assert "deselected" not in project.run("--eval-shard", "1/1").counts()
    monkeypatch.setenv("BAKEOFF_SHARD", "4/3")
    assert "BAKEOFF_SHARD='4/3': write the number of the shard" in project.run().result.stderr.str()
    refused = project.run("--eval-shard", "x").result.stderr.str()
    assert "'x': write the number of the shard and how many there are, such as 1/4 or 4/4" in refused
