"""Read reports of SWE-bench: of a run (`<model>.<run id>.json`), of instances (`report.json`), or a folder of these."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bakeoff._kernel.files import read_file
from bakeoff.errors import RunFolderError
from bakeoff.logs.trials import (
    ForeignLog,
    LoggedObject,
    LoggedTrial,
    broken,
    check,
    child_folders,
    file_in,
    name_of,
    read_json,
    score_of,
    subject_of,
)
from bakeoff.plan import Case, SubjectSpec
from bakeoff.record import TESTS, UNIT_TESTS, Failure, Score

RESOLVED = "resolved"
"""The scorer of an imported instance."""
_FIELDS = ("resolved", "patch_is_None")


class _RunReport(LoggedObject):
    """The report of a run. In the newest version, it names failures that the environment probably caused."""

    submitted_ids: list[str] = []
    incomplete_ids: list[str] = []
    empty_patch_ids: list[str] = []
    resolved_ids: list[str]
    unresolved_ids: list[str] = []
    error_ids: list[str] = []
    infra_failure_ids: list[str] = []
    failure_reasons: dict[str, Any] = {}


class _TestStatus(LoggedObject):
    success: list[str] = []
    failure: list[str] = []


class _Instance(LoggedObject):
    resolved: bool
    patch_is_None: bool = False
    patch_exists: bool = True
    patch_successfully_applied: bool | None = None
    infra_failure: bool = False
    infra_failure_reason: str | None = None
    tests_status: dict[str, _TestStatus] = {}


def is_instance_report(data: Any) -> bool:
    """Tell whether JSON data is the report of one or more instances."""
    if not isinstance(data, dict) or not data:
        return False
    first = next(iter(data.values()))
    return isinstance(first, dict) and all(field in first for field in _FIELDS)


def read_report(path: Path) -> ForeignLog:
    """Read the report of a run, the report of an instance, or a folder with one folder for each instance."""
    if path.is_dir():
        return _folder_log(path)
    data = read_json(path)
    if is_instance_report(data):
        return _instances_log(path, data)
    report = check(_RunReport, data, path)
    # <model>.<run id>.json, where a slash of the model is written as two underscores
    model, _, run = path.stem.rpartition(".")
    subject = _subject(model or path.stem)
    ran = dict.fromkeys((*report.resolved_ids, *report.unresolved_ids, *report.error_ids, *report.empty_patch_ids))
    reasons = {name: each for name, each in report.failure_reasons.items() if isinstance(each, str)}
    sets = {name: frozenset(getattr(report, name)) for name in _RunReport.model_fields if name.endswith("_ids")}

    def trials() -> Iterator[LoggedTrial]:
        for name in ran:
            reason = reasons.get(name, "")
            failure = _lost(name, sets, reason)
            yield _trial(name, subject, failure, None if failure else _verdict(name, sets, reason))

    return ForeignLog(
        tool="SWE-bench",
        format="SWE-bench run report (.json)",
        name=name_of(run or path.stem),
        trials=trials,
        planned=tuple(dict.fromkeys(map(name_of, (*ran, *report.submitted_ids, *report.incomplete_ids)))),
        sparse=False,
        content_known=False,
    )


def _subject(model: str) -> SubjectSpec:
    name = name_of(model.replace("__", "/"))
    return subject_of(name, {"model": name})


def _lost(name: str, sets: dict[str, frozenset[str]], reason: str) -> Failure | None:
    if name in sets["infra_failure_ids"]:
        return broken(reason or "SWE-bench blames the environment", otherwise="EnvironmentError")
    if name in sets["error_ids"]:
        return broken(reason or "the evaluation of the instance ended with an error", otherwise="EvaluationError")
    return None


def _verdict(name: str, sets: dict[str, frozenset[str]], reason: str) -> Score:
    resolved = name in sets["resolved_ids"]
    why = "the patch is empty" if name in sets["empty_patch_ids"] else reason or ("" if resolved else "not resolved")
    return score_of(RESOLVED, resolved, why)


def _instances_log(path: Path, data: dict[str, Any]) -> ForeignLog:
    def trials() -> Iterator[LoggedTrial]:
        for name, each in data.items():
            yield _instance(name, check(_Instance, each, path, name), _subject(path.parent.parent.name or "model"))

    return _log_of_instances("SWE-bench instance report (.json)", name_of(path.stem), trials)


def _folder_log(path: Path) -> ForeignLog:
    """Read `logs/run_evaluation/<run id>/<model>`: a folder for each instance, with its report and patch."""
    subject = _subject(path.resolve().name)

    def trials() -> Iterator[LoggedTrial]:
        for folder in child_folders(path):
            report = file_in(folder, "report.json")
            patch = file_in(folder, "patch.diff")
            artefacts = {"patch.diff": read_file(patch).decode("utf-8", "replace")} if patch else {}
            if report is None:
                failure = broken("the instance has no report.json", otherwise="EvaluationError")
                yield _trial(folder.name, subject, failure, None, artefacts=artefacts)
                continue
            data = read_json(report)
            if not is_instance_report(data):
                raise RunFolderError(f"{report} is not the report of an instance of SWE-bench")
            for name, each in data.items():
                trial = _instance(name, check(_Instance, each, report, name), subject)
                yield trial.model_copy(update={"artefacts": artefacts})

    return _log_of_instances("SWE-bench evaluation folder", name_of(path.resolve().parent.name), trials)


def _log_of_instances(format_: str, name: str, trials: Any) -> ForeignLog:
    return ForeignLog(tool="SWE-bench", format=format_, name=name, trials=trials, content_known=False)


def _instance(name: str, found: _Instance, subject: SubjectSpec) -> LoggedTrial:
    tests = [
        {"name": f"{group}: {test}", "passed": passed}
        for group, status in found.tests_status.items()
        for passed, names in ((True, status.success), (False, status.failure))
        for test in names
        if group in ("FAIL_TO_PASS", "PASS_TO_PASS")
    ]
    failure = broken(found.infra_failure_reason, otherwise="EnvironmentError") if found.infra_failure else None
    why = "" if found.resolved else _why(found)
    more: dict[str, Any] = {}
    if tests:
        more = {TESTS: tests, UNIT_TESTS: {"passed": sum(bool(t["passed"]) for t in tests), "total": len(tests)}}
    return _trial(name, subject, failure, None if failure else score_of(RESOLVED, found.resolved, why, **more))


def _trial(
    name: str, subject: SubjectSpec, failure: Failure | None, score: Score | None, **more: dict[str, str]
) -> LoggedTrial:
    case, scores = Case(id=name_of(name), prompt=""), () if score is None else (score,)
    return LoggedTrial(case=case, subject=subject, failure=failure, scores=scores, **more)


def _why(found: _Instance) -> str:
    if found.patch_is_None or not found.patch_exists:
        return "there is no patch"
    if found.patch_successfully_applied is False:
        return "the patch could not be applied, or the tests gave no output"
    return "not all tests have the result that they should have"
