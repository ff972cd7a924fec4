"""Define the messages between the driver of a run and its Ray workers: names and settings, never code."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast
from uuid import uuid4

from bakeoff._kernel.choices import SandboxName
from bakeoff._kernel.clock import Delay
from bakeoff._kernel.environment import read_environment
from bakeoff._version import __version__
from bakeoff.engine.registry import ResolvedPlan
from bakeoff.errors import PlanError, UsageError
from bakeoff.models.rate_limit import Outcome
from bakeoff.options import RunOptions
from bakeoff.plan import ScorerSpec, SubjectSpec, describe
from bakeoff.record import Record, Usage
from bakeoff.storage.redaction import known_secrets

# --- from the driver to a worker ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Order:
    """Everything that a worker needs to run trials of a plan, but the plan.

    It has secrets, so it travels as the argument of a call, from memory to memory. Ray itself puts arguments of more
    than 100 kB into its object store, which may spill to a disk.
    """

    version: str
    source: str  # of the registry
    folder: str  # the current folder of the driver
    options: RunOptions
    environment: Mapping[str, str] = field(repr=False)
    marker: str | None  # a file among the recordings


@dataclass(frozen=True, slots=True)
class Start:
    """Run a trial. `job` is unique, also if the trial was started before on a worker that was lost."""

    job: int
    trial: int
    prior: Record | None
    spent: Usage


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel a job. It may not have been started yet."""

    job: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Start no further tries of trials."""


@dataclass(frozen=True, slots=True)
class Close:
    """Cancel what runs, and close the resources."""


@dataclass(frozen=True, slots=True)
class BudgetGrant:
    """A provider's slot. The worker has to give it back."""

    request: int


@dataclass(frozen=True, slots=True)
class SpendingReport:
    """The spending of the run on all nodes."""

    spent: Usage
    counted: int  # how many reports of this worker are in it
    reached: str | None  # a sentence about the limit that has been reached


# --- from a worker to the driver ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeOpened:
    """The worker can run trials."""


@dataclass(frozen=True, slots=True)
class NodeFailed:
    """The worker cannot run trials, or met an error that is no trial's."""

    reason: str
    ended: bool = False  # it runs nothing any more


@dataclass(frozen=True, slots=True)
class NodeClosed:
    """The worker has closed its resources. `left_behind` are folders that could not be removed, and why."""

    left_behind: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A trial is finished. Its record holds no secrets."""

    job: int
    record: Record


@dataclass(frozen=True, slots=True)
class UsageSpent:
    """A job has used this much just now."""

    job: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class TrialsWanted:
    """A trial needs a slot of a provider. All workers together get `most` at a time."""

    request: int
    provider: str
    most: int


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A slot is no longer held, or no longer wanted."""

    request: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class WaitNotice:
    """A trial waits, or waits no longer."""

    trial: int
    delay: Delay | None


ToWorker = Start | Cancel | Drain | Close | BudgetGrant | SpendingReport
ToDriver = NodeOpened | NodeFailed | NodeClosed | TrialEnded | UsageSpent | TrialsWanted | GivenBack | WaitNotice


_OF_ONE_MACHINE = frozenset(
    (
        *("PATH", "HOME", "PWD", "OLDPWD", "SHELL", "USER", "LOGNAME", "HOSTNAME", "TMPDIR", "TMP", "TEMP", "TERM"),
        *("SHLVL", "_", "DISPLAY", "VIRTUAL_ENV", "OMP_NUM_THREADS", "LANG", "MAIL", "EDITOR", "PAGER"),
    )
)
_OF_ONE_MACHINE_PREFIXES = (
    *("RAY_", "PYTHON", "LD_", "DYLD_", "LC_", "XDG_", "SSH_", "CONDA_", "CUDA_", "NVIDIA_", "KUBERNETES_", "NODE_"),
    *("COLUMNS", "LINES", "PYTEST_", "COV_", "COVERAGE_", "DBUS_", "WAYLAND_", "SYSTEMD_", "INVOCATION_"),
)


@contextmanager
def make_order(resolved: ResolvedPlan, options: RunOptions, sandbox: str | None) -> Iterator[Order]:
    """Yield what each worker is to be told. Raise PlanError for a plan that only this process can run.

    `sandbox` is the one that was chosen here; all nodes use the same.
    """
    source, here = _portable_source(resolved), Path.cwd()
    with _marked(options) as marker:
        yield Order(
            version=__version__,
            source=source,
            folder=str(here),
            options=replace(
                options,
                executor="local",
                ray_address=None,
                sandbox=cast("SandboxName", sandbox or options.sandbox),
                results=here / options.results,
                folder=options.folder and here / options.folder,
                recordings=here / options.recordings,
                secrets={**known_secrets(), **options.secrets},
            ),
            environment=_environment(),
            marker=marker,
        )


def _environment() -> dict[str, str]:
    """Return the variables of this process and of its `.env` files, without those that describe this machine."""
    return {
        name: value
        for name, value in read_environment().items()
        if name not in _OF_ONE_MACHINE and not name.startswith(_OF_ONE_MACHINE_PREFIXES)
    }


@contextmanager
def _marked(options: RunOptions) -> Iterator[str | None]:
    """Leave a file among the recordings, by which a node can tell whether it sees the same folder."""
    if options.replay == "off":
        yield None
        return
    folder = Path.cwd() / options.recordings
    marker = folder / f".shared-{uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        marker.touch()
    except OSError as error:
        raise UsageError(
            f"recordings: {folder} cannot be written ({error.strerror}), which Ray needs: choose another"
        ) from error
    try:
        yield str(marker)
    finally:
        marker.unlink(missing_ok=True)


def _portable_source(resolved: ResolvedPlan) -> str:
    """Return the name of the plan's registry. Raise PlanError for what only this process can build."""
    plan = resolved.plan
    specs: tuple[SubjectSpec | ScorerSpec, ...] = (*plan.subjects, *plan.every_scorer)
    problems = [
        f"{describe(spec)}: {target!r} cannot be imported on a Ray node: move the function out of the script into a "
        "module, and name it as `module:function`"
        for spec in specs
        if isinstance(target := spec.options.get("target"), str) and target.startswith("__main__:")
    ]
    if resolved.source is None or resolved.rows:
        problems.append(
            f"plan {plan.name!r} uses a registry that only this process can build: for Ray, give it the name of a "
            "function that returns it, with `registry.built_by('module:function')`, or name subjects and scorers as "
            "`module:function`, with the kind `function`"
        )
    if problems or resolved.source is None:
        raise PlanError(problems)
    return resolved.source
