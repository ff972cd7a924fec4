"""Runs on several Ray nodes of this machine."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from bakeoff import (
    Case,
    Plan,
    PlanError,
    Record,
    Registry,
    RunControl,
    RunFolder,
    RunOptions,
    ScorerSpec,
    SubjectSpec,
    UsageError,
    __version__,
    default_registry,
    run,
    summarise,
)
from bakeoff.engine.executors.ray_driver import RayRunner, make_order
from bakeoff.engine.executors.ray_worker import NodeFailed, Order, Worker
from bakeoff.engine.resources import sandbox_of
from bakeoff.engine.run_control import Budget
from bakeoff.engine.trial import Job, TrialRunner
from bakeoff.record import NO_USAGE

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]  # Ray uses what Python deprecates
EXACT = ScorerSpec(kind="exact")
Options = Callable[..., RunOptions]


@pytest.fixture(scope="module")
def cluster() -> "Iterator[Cluster]":
    """Three nodes, of which the first is the driver's own."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20}
        started: Any = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        for _ in range(2):
            started.add_node(**node)
        yield started
        started.shutdown()


@pytest.fixture
def options(cluster: "Cluster", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    """Makes options for runs on the cluster, in a folder with the subjects."""
    shutil.copy(Path(__file__).with_name("ray_subjects.py"), tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "run").mkdir()
    return lambda **more: RunOptions(executor="ray", ray_address=cluster.address, folder=tmp_path / "run", **more)


def plan_of(target: str, *prompts: str, **more: Any) -> Plan:
    subject = SubjectSpec(kind="function", name="s", options={"target": f"ray_subjects:{target}"})
    cases = tuple(Case(id=f"case-{n}", prompt=prompt, expected="done") for n, prompt in enumerate(prompts))
    return Plan(**{"name": "p", "cases": cases, "subjects": (subject,), "scorers": (EXACT,), **more})


async def all_of(plan: Plan, options: RunOptions, **more: Any) -> list[Record]:
    return [record async for record in run(plan, options, **more)]


async def until_started(folder: Path, count: int) -> dict[str, list[int]]:
    """Wait until so many trials have begun. Return the prompts of each process."""
    while len(found := list(folder.glob("started-*"))) < count:
        await asyncio.sleep(0.05)
    running: dict[str, list[int]] = {}
    for _, prompt, pid in (path.name.split("-") for path in found):
        running.setdefault(pid, []).append(int(prompt))
    return running


async def test_a_run_on_ray_and_a_local_run_have_the_same_summary(options: Options, tmp_path: Path) -> None:
    scorers = (EXACT, ScorerSpec(kind="function", name="broken", options={"target": "ray_subjects:score_that_breaks"}))
    plan = plan_of("upper", "a", "done", "raise", *map(str, range(20)), rounds=2, scorers=scorers)
    await all_of(plan, options(jobs=7))
    (tmp_path / "local").mkdir()
    await all_of(plan, RunOptions(folder=tmp_path / "local"))
    on_ray, local = (
        _facts(summarise(plan, RunFolder(tmp_path / name).latest_records(plan))) for name in ("run", "local")
    )
    assert on_ray == local
    assert sum(subject["planned"] for subject in on_ray["subjects"]) == 46


def _facts(summary: Any) -> Any:
    """Return a summary without what depends on how fast the machine is."""

    def without_times(data: Any) -> Any:
        if isinstance(data, dict):
            return {key: without_times(value) for key, value in data.items() if "seconds" not in key}
        return [without_times(item) for item in data] if isinstance(data, list) else data

    return without_times(summary.model_dump(mode="json"))


async def test_the_trials_of_a_node_that_dies_run_again_on_others(
    cluster: "Cluster", options: Options, tmp_path: Path
) -> None:
    plan, doomed = plan_of("hold", *map(str, range(20))), cluster.add_node(num_cpus=1)
    running = asyncio.create_task(all_of(plan, options(jobs=8)))
    began = await until_started(tmp_path, 8)
    await asyncio.to_thread(cluster.remove_node, doomed, allow_graceful=False)
    await until_started(tmp_path, 10)  # the two that the lost node ran were started again
    (tmp_path / "go-on").touch()
    records = await running
    assert len(began) == 4
    assert Counter(record.case for record in records) == Counter(case.id for case in plan.cases)
    assert {record.verdict for record in records} == {"pass"}
    written = [entry for entry in RunFolder(tmp_path / "run").entries() if isinstance(entry, Record)]
    assert len(written) == 20
    assert len(list(tmp_path.glob("started-*"))) == 22


async def test_the_trials_of_a_worker_that_is_silent_run_again_on_others(options: Options, tmp_path: Path) -> None:
    plan = plan_of("hold", *map(str, range(3)))
    running = asyncio.create_task(all_of(plan, options(jobs=3, ray_silence_seconds=5.0)))
    began = await until_started(tmp_path, 3)
    os.kill(int(next(iter(began))), signal.SIGSTOP)
    await until_started(tmp_path, 4)
    (tmp_path / "go-on").touch()
    records = await running
    assert [record.verdict for record in records] == ["pass"] * 3


async def test_a_trial_that_kills_every_worker_is_given_up_as_infra(options: Options) -> None:
    (record,) = await all_of(plan_of("die", "0"), options(jobs=1))
    assert record.verdict == "infra"
    assert record.failure is not None
    assert "3 Ray workers were lost while they ran it" in record.failure.message


async def test_limits_hold_over_all_nodes(options: Options, tmp_path: Path) -> None:
    import ray_subjects  # type: ignore[import-not-found]

    (tmp_path / "calls").mkdir()
    subject = SubjectSpec(kind="caller", name="s")
    plan = plan_of("", *map(str, range(12)), subjects=(subject,))
    registry: Registry = ray_subjects.registry(plan, RunOptions()).built_by("ray_subjects:registry")
    records = await all_of(plan, options(jobs=6, max_cost=20.0), registry=registry)
    spent = RunFolder(tmp_path / "run").spent().cost
    assert spent is not None
    assert 20 <= spent <= 20 + 6
    assert {record.verdict for record in records} <= {"pass", "budget"}
    assert {path.name for path in (tmp_path / "calls").glob("seen-*")} == {"seen-1", "seen-2"}


async def test_what_a_node_cannot_import_is_an_error_before_the_first_trial(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = ModuleType("only_here")
    monkeypatch.setitem(sys.modules, "only_here", here)
    monkeypatch.setattr(here, "upper", str.upper, raising=False)
    subject = SubjectSpec(kind="function", name="s", options={"target": "only_here:upper"})
    with pytest.raises(UsageError, match=r"Ray node .*No module named 'only_here'.* `module:function` in a folder"):
        await all_of(plan_of("", "x", subjects=(subject,)), options())


async def test_a_node_that_joins_and_cannot_run_the_plan_is_named_with_the_reason(
    cluster: "Cluster", options: Options, tmp_path: Path
) -> None:
    control = RunControl()
    running = asyncio.create_task(all_of(plan_of("hold", "0", "1", "2"), options(jobs=3), control=control))
    await until_started(tmp_path, 3)
    (tmp_path / "ray_subjects.py").rename(tmp_path / "moved.py")  # workers of later nodes cannot import it
    late = cluster.add_node(num_cpus=1)
    while not control.left_out:
        await asyncio.sleep(0.05)
    (tmp_path / "go-on").touch()
    assert [record.verdict for record in await running] == ["pass"] * 3
    await asyncio.to_thread(cluster.remove_node, late)
    ((node, why),) = control.left_out.items()
    assert re.fullmatch(r"Ray node \S+ \(\w{8}\)", node)
    assert "No module named 'ray_subjects'" in why


async def test_stopping_a_run_cancels_its_trials_on_all_nodes(options: Options, tmp_path: Path) -> None:
    control = RunControl()
    running = asyncio.create_task(all_of(plan_of("hold", *map(str, range(9))), options(jobs=3), control=control))
    await until_started(tmp_path, 3)
    control.stop()
    assert await running == []
    assert len(list(tmp_path.glob("cancelled-*"))) == 3


async def test_no_log_of_ray_holds_a_secret(
    cluster: "Cluster", options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-ray-0123456789abcdefXYZ"
    monkeypatch.setenv("TEST_API_KEY", secret)
    (record,) = await all_of(plan_of("tell_secret", "x"), options())
    assert record.transcript is not None
    assert "TEST_API_KEY" in str(record.transcript.output)
    head: Any = cluster.head_node
    logs = Path(head.get_session_dir_path()).rglob("*")
    texts = [path.read_bytes() for path in logs if path.is_file()]
    assert any(b"the key is" in text for text in texts)
    assert not any(secret.encode() in text for text in texts)


@pytest.mark.parametrize(
    "words",
    [("agents", "run", "--agent", "oracle", "--exercise", "1", "--no-open"), ("mcp", "evaluate")],
    ids=["agents", "mcp"],
)
def test_the_command_line_runs_on_a_cluster_and_prints_nothing_of_ray(
    words: tuple[str, ...], cluster: "Cluster", tmp_path: Path
) -> None:
    examples = resources.files("bakeoff.bundled") / "mcp"
    for name in (
        "custom_provider/keyword_provider.py",
        "custom_provider/mcp-testing-framework.yaml",
        "servers/kitchen.py",
    ):
        (tmp_path / Path(name).name).write_text((examples / name).read_text("utf-8"))
    done = subprocess.run(
        [sys.executable, "-m", "bakeoff", *words, "--json", "--executor", "ray", "--ray-address", cluster.address],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]
    assert not re.search(r"\bray\b|raylet|gcs", done.stderr, re.IGNORECASE)


async def test_processes_of_a_ray_that_is_started_for_the_run_have_no_keys(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = ("sk-ray-of-its-own", "0123456789abcdefXYZ")
    monkeypatch.setenv("TEST_API_KEY", "-".join(parts))
    plan = plan_of("find_key", parts[1])
    (record,) = await all_of(plan, RunOptions(executor="ray", ray_address="local", folder=tmp_path / "run"))
    assert record.transcript is not None
    assert record.transcript.output == "found: []"
    assert os.environ["TEST_API_KEY"] == "-".join(parts)


def test_a_ray_of_others_on_this_machine_that_cannot_run_trials_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden/bakeoff/__init__.py"
    hidden.parent.mkdir(parents=True)
    hidden.write_text("raise ModuleNotFoundError(\"No module named 'bakeoff'\")")
    # Sockets of Ray lie there, whose paths must be short; other tests have a Ray in the usual place.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as place:
        environment = {**os.environ, "RAY_TMPDIR": place, "RAY_USAGE_STATS_ENABLED": "0"}
        environment.pop("RAY_ADDRESS", None)
        ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--port", "0"]
        other = subprocess.Popen(
            [*ray, "--num-cpus", "1", "--include-dashboard=false", "--object-store-memory", str(80 << 20)],
            env={**environment, "PYTHONPATH": str(tmp_path / "hidden")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not list(Path(place).rglob("ray_current_cluster")):
                assert other.poll() is None
                time.sleep(0.1)
            words = ["agents", "run", "--agent", "oracle", "--exercise", "1", "--no-open", "--executor", "ray"]
            done = subprocess.run(
                [sys.executable, "-m", "bakeoff", *words],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=200,
                check=False,
            )
        finally:
            other.terminate()
            other.wait()
    told = " ".join(done.stderr.split())
    assert done.returncode == 3, told
    assert "no Ray node can run trials: Ray node" in told
    assert "No module named 'bakeoff'" in told
    assert "start one for this run alone with --ray-address local" in told


# --- without a cluster ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("registry", "target", "way_out"),
    [
        (default_registry().with_scorer("mine", lambda _: None), "json:dumps", "registry.built_by('module:function')"),  # type: ignore[arg-type,return-value]
        (default_registry(), "__main__:main", "move the function out of the script into a module"),
    ],
)
async def test_what_only_this_process_can_build_is_refused(
    registry: Registry, target: str, way_out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "main", str, raising=False)
    plan = plan_of("", "x", subjects=(SubjectSpec(kind="function", name="s", options={"target": target}),))
    with pytest.raises(PlanError, match="module:function") as refused:
        await all_of(plan, RunOptions(executor="ray", results=tmp_path), registry=registry)
    assert way_out in str(refused.value)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"),
        ("ray://127.0.0.1:1", "no Ray cluster answers at ray://127.0.0.1:1"),
        ("somewhere", "'somewhere' is no address: write it as HOST:PORT"),
        ("127.0.0.1:99999", "is no address"),
    ],
)
async def test_a_wrong_address_is_an_error_at_once(address: str, problem: str, tmp_path: Path) -> None:
    plan = plan_of("", "x", subjects=(SubjectSpec(kind="function", name="s", options={"target": "json:dumps"}),))
    with pytest.raises(UsageError, match="ray_address") as refused:
        await all_of(plan, RunOptions(executor="ray", ray_address=address, results=tmp_path))
    assert problem in str(refused.value)


async def test_a_server_that_is_no_ray_is_told_from_one(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    plan = plan_of("", "x", subjects=(SubjectSpec(kind="function", name="s", options={"target": "json:dumps"}),))
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UsageError, match="is no Ray cluster"):
            await all_of(plan, RunOptions(executor="ray", ray_address=f"127.0.0.1:{port}", results=tmp_path))


async def test_a_cluster_without_a_node_that_may_run_trials_is_an_error(tmp_path: Path) -> None:
    import ray

    plan = plan_of("", "x", subjects=(SubjectSpec(kind="function", name="s", options={"target": "json:dumps"}),))
    ray.init("local", num_cpus=0, include_dashboard=False, log_to_driver=False)
    try:
        with pytest.raises(UsageError, match="has no node with CPUs: add one"):
            await all_of(plan, RunOptions(executor="ray", results=tmp_path))
    finally:
        ray.shutdown()


async def test_the_record_of_an_attempt_is_kept_when_no_node_is_left_to_score_it(tmp_path: Path) -> None:
    plan = plan_of("", "x", subjects=(SubjectSpec(kind="function", name="s", options={"target": "json:dumps"}),))
    (record,) = await all_of(plan, RunOptions(results=tmp_path))
    resolved = default_registry().resolve(plan)
    options = RunOptions(executor="ray", results=tmp_path, ray_silence_seconds=0.01)
    with make_order(resolved, options, None) as order:
        local = TrialRunner(resolved, options, sandbox_of(options), {}, RunControl())
        runner = RayRunner(local, Budget(options, NO_USAGE), order)
        job = Job(plan.trial(0), prior=record)
        assert await runner.run(job, lambda _: None) is record


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"version": "0.0.1"}, "and the run was started by 0.0.1: install that there"),
        (
            {"marker": "/nowhere/.shared-1"},
            "it does not see the recordings in /nowhere: use a folder that all nodes share",
        ),
    ],
)
def test_a_worker_refuses_what_it_cannot_run(changes: dict[str, Any], problem: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "source": "json:loads",
        "folder": str(Path.cwd()),
        "environment": {},
        "marker": None,
        "version": __version__,
    }
    worker = Worker()
    worker.open(Order(options=RunOptions(results=tmp_path), **{**given, **changes}), b"{}")
    (event,) = worker.poll()
    assert isinstance(event, NodeFailed)
    assert problem in event.reason
    for thread in [thread for thread in threading.enumerate() if thread.name == "bakeoff-trials"]:
        thread.join()


def test_recordings_that_cannot_be_marked_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    resolved = default_registry().resolve(
        plan_of("", "x", subjects=(SubjectSpec(kind="function", name="s", options={"target": "json:dumps"}),))
    )
    options = RunOptions(executor="ray", replay="strict", recordings=tmp_path / "file" / "recordings")
    with pytest.raises(UsageError, match=r"recordings: .* cannot be written"), make_order(resolved, options, None):
        pass


def test_without_the_extra_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['ray'] = None\nfrom bakeoff.cli.main import main\nmain()"
    words = ["run", "--suite", "x", "--executor", "ray"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "pip install 'bakeoff[ray]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_is_refused_for_another_executor() -> None:
    with pytest.raises(UsageError, match="is for the executor `ray`"):
        RunOptions(ray_address="10.0.0.1:6379")
    with pytest.raises(UsageError, match="is not one of local, ray"):
        RunOptions(executor="dask")  # type: ignore[arg-type]
