"""Measure runs on local Ray nodes: the share of time that sleeping trials lose, and what a second worker gains.

Run it on a quiet machine with two cores or more: `make bench BENCH=ray`. Starting the cluster is not measured, and
neither is the time until the workers are open.
"""

import asyncio
import os
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from bakeoff import Case, Plan, RunOptions, ScorerSpec, SubjectSpec, run

SLEEPERS, IN_FLIGHT, NODES = 1_000, 300, 3
GRADED, LOOPS = 24, 6_000_000
ROUNDS = 3
MAX_LOST, MIN_GAIN = 1.3, 1.7


async def sleep(prompt: str) -> str:
    await asyncio.sleep(1.0)
    return prompt


def answer(prompt: str) -> str:
    return prompt


def grade(given: object) -> bool:
    """Take about 0.2 s of a core, in Python, as a grader that compares or parses does."""
    return sum(number % 7 for number in range(LOOPS)) > 0


def _plan(cases: int, target: str, scorer: ScorerSpec) -> Plan:
    return Plan(
        name="ray",
        cases=tuple(Case(id=str(number), prompt="x", expected="x") for number in range(cases)),
        subjects=(SubjectSpec(kind="function", name="s", options={"target": target}),),
        scorers=(scorer,),
    )


async def _seconds(plan: Plan, address: str, jobs: int) -> float:
    """Return the time from the start of the first trial until all records are on the disk."""
    with tempfile.TemporaryDirectory() as folder:
        options = RunOptions(executor="ray", ray_address=address, jobs=jobs, results=Path(folder))
        records = [(record.started, record.verdict, time.time()) async for record in run(plan, options)]
    assert {verdict for _, verdict, _ in records} == {"pass"}
    return max(seen for *_, seen in records) - min(started for started, *_ in records)


def _measured(plan: Plan, jobs: int, nodes: int) -> float:
    """Run a plan on a cluster of its own."""
    from ray.cluster_utils import Cluster

    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20}
    cluster: Any = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        for _ in range(nodes - 1):
            cluster.add_node(**node)
        return asyncio.run(_seconds(plan, cluster.address, jobs))
    finally:
        cluster.shutdown()


def main() -> int:
    if find_spec("ray") is None:
        print("Ray is not installed: run `pip install 'bakeoff[ray]'`")
        return 0
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    exact = ScorerSpec(kind="exact")
    ideal = -(-SLEEPERS // IN_FLIGHT) * 1.0
    slept = _measured(_plan(SLEEPERS, "bench.bench_ray:sleep", exact), IN_FLIGHT, NODES)
    lost = slept / ideal
    print(
        f"{SLEEPERS} trials of 1 s, {IN_FLIGHT} in flight over {NODES} nodes: {slept:.2f} s, {lost:.2f}x of the ideal"
    )
    grading = _plan(
        GRADED, "bench.bench_ray:answer", ScorerSpec(kind="function", options={"target": "bench.bench_ray:grade"})
    )
    pairs = [(_measured(grading, 4, 1), _measured(grading, 4, 2)) for _ in range(ROUNDS)]
    gains = [one / two for one, two in pairs]
    for one, two in pairs:
        print(f"{GRADED} gradings in Python: 1 worker {one:.2f} s, 2 workers {two:.2f} s, {one / two:.2f}x")
    print(f"2 workers of 1: {median(gains):.2f}x (median of {ROUNDS}), on {os.cpu_count()} cores")
    print(f"wanted: at most {MAX_LOST}x of the ideal, at least {MIN_GAIN}x with 2 workers")
    return 0 if lost <= MAX_LOST and median(gains) >= MIN_GAIN else 1


if __name__ == "__main__":
    sys.exit(main())
