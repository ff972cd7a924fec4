"""Decide what travels to the workers of a Ray cluster: names and settings, never code."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast
from uuid import uuid4

from bakeoff._kernel.choices import SandboxName
from bakeoff._kernel.environment import read_environment
from bakeoff._version import __version__
from bakeoff.engine.executors.ray_messages import Order
from bakeoff.engine.registry import ResolvedPlan
from bakeoff.errors import PlanError, UsageError
from bakeoff.options import RunOptions
from bakeoff.plan import ScorerSpec, SubjectSpec, describe
from bakeoff.storage.redaction import known_secrets

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
