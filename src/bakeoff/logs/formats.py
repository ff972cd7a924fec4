"""Know the formats of logs, and tell which one a file has by its content."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from bakeoff.logs.folders import child_folders, file_in
from bakeoff.logs.heads import first_bytes, outer_keys
from bakeoff.logs.trials import ForeignLog


@dataclass(frozen=True)
class Format:
    """A format of logs. The module that reads it is imported when it is needed."""

    what: str
    home: str  # module:function

    def read(self, path: Path) -> ForeignLog:
        """Read a log, or raise an error that says what is wrong in it."""
        module, _, name = self.home.partition(":")
        made: Callable[[Path], ForeignLog] = getattr(import_module(f"bakeoff.logs.{module}"), name)
        return made(path)


FORMATS = {
    "inspect": Format("Inspect logs, .eval", "inspect_logs:read_archive"),
    "inspect-json": Format("Inspect logs, .json", "inspect_logs:read_json_log"),
    "harbor": Format("Harbor job and trial folders", "harbor:read_job"),
    "atif": Format("ATIF trajectories, .json", "atif:read_trajectory"),
    "promptfoo": Format("promptfoo output, .json", "promptfoo:read_output"),
    "promptfoo-lines": Format("promptfoo output, .jsonl", "promptfoo:read_lines"),
    "deepeval": Format("DeepEval test runs, .json", "deepeval:read_test_run"),
    "pydantic-evals": Format("pydantic-evals reports, .json", "pydantic_evals:read_report"),
    "swebench": Format("SWE-bench reports, .json, or a folder of them", "swebench:read_report"),
}


def known_formats() -> str:
    """Return the list of formats for messages."""
    return ", ".join(f"{name} ({each.what})" for name, each in FORMATS.items())


def detect(path: Path) -> str | None:
    """Return the name of the format of a file or folder by its content, or None if it is not known."""
    if path.is_dir():
        return _format_of_folder(path)
    if not path.is_file():
        return None
    head = first_bytes(path)
    if head.startswith(b"PK\x03\x04"):
        return "inspect" if any(word in head for word in (b"_journal/", b"header.json", b"samples/")) else None
    keys, first = outer_keys(head)
    return next((name for name, is_it in _BY_KEYS.items() if is_it(keys, first, head)), None)


def _format_of_folder(folder: Path) -> str | None:
    from bakeoff.logs.harbor import trial_folders

    if trial_folders(folder):
        return "harbor"
    reports = (file_in(each, "report.json") for each in child_folders(folder))
    return "swebench" if any(report and detect(report) == "swebench" for report in reports) else None


_Test = Callable[[set[str], set[str], bytes], bool]
# Given the outer keys as far as the first bytes have them, those of the first object inside, and these bytes.
_BY_KEYS: dict[str, _Test] = {
    "atif": lambda keys, _, head: "schema_version" in keys and b'"ATIF-v' in head,
    "inspect-json": lambda keys, _, __: "eval" in keys and bool(keys & {"version", "status"}),
    "promptfoo": lambda keys, _, __: {"evalId", "results"} <= keys or {"results", "config"} <= keys,
    "promptfoo-lines": lambda keys, _, __: {"promptIdx", "testIdx", "success"} <= keys,
    "deepeval": lambda keys, _, head: bool(keys & {"testCases", "testRunData"}) and b'"metricsData"' in head,
    "pydantic-evals": lambda keys, _, head: {"name", "cases"} <= keys and b'"evaluator_failures"' in head,
    "swebench": lambda keys, inner, _: "resolved_ids" in keys or {"patch_is_None", "resolved"} <= inner,
}
