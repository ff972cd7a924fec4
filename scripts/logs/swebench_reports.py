# mypy: ignore-errors
"""Make the reports of SWE-bench in tests/logs/logs, with swebench 5.0.2 and no containers.

SWE-bench's own functions grade the outcome of tests and make the report of a run; the outcomes are invented.

    python scripts/logs/swebench_reports.py tests/logs/logs
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from swebench.harness.constants import FAIL_TO_PASS, PASS_TO_PASS, RUN_EVALUATION_LOG_DIR, ResolvedStatus
from swebench.harness.grading import get_eval_tests_report, get_resolution_status
from swebench.harness.reporting import make_run_report

RUN, MODEL = "sample-run", "acme/coder-1"
GOLD = {FAIL_TO_PASS: ["test_fixed", "test_fixed_too"], PASS_TO_PASS: ["test_old"]}
PASSED = {"test_fixed": "PASSED", "test_fixed_too": "PASSED", "test_old": "PASSED"}
OUTCOMES = {  # instance: tests, or None if there is no report; what the log says
    "acme__lib-1": (PASSED, ""),
    "acme__lib-2": (PASSED, ""),
    "acme__lib-3": ({**PASSED, "test_fixed_too": "FAILED"}, ""),
    "acme__lib-4": (None, "Cannot allocate memory"),  # SWE-bench blames the environment
    "acme__lib-5": (None, "AssertionError"),
    "acme__lib-6": ({**PASSED, "test_old": "FAILED"}, "Could not resolve host"),
}


def main(target: Path) -> None:
    """Write the report of the run, and keep the folder of its instances."""
    os.chdir(folder := Path(tempfile.mkdtemp()))
    predictions = {
        name: {"instance_id": name, "model_name_or_path": MODEL, "model_patch": f"diff of {name}"} for name in OUTCOMES
    }
    predictions["acme__lib-7"] = {"instance_id": "acme__lib-7", "model_name_or_path": MODEL, "model_patch": ""}
    logs = folder / RUN_EVALUATION_LOG_DIR / RUN / MODEL.replace("/", "__")
    for name, (tests, log) in OUTCOMES.items():
        instance = logs / name
        instance.mkdir(parents=True)
        (instance / "test_output.txt").write_text(log)
        (instance / "patch.diff").write_text(f"--- a/lib.py\n+++ b/lib.py\n@@ -1 +1 @@\n-old\n+{name}\n")
        if tests is not None:
            status = get_eval_tests_report(tests, GOLD)
            whole = get_resolution_status(status) == ResolvedStatus.FULL.value
            report = {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": True}
            more = {"resolved": whole, "infra_failure": False, "tests_status": status}
            (instance / "report.json").write_text(json.dumps({name: {**report, **more}}, indent=4))
    dataset = [{"instance_id": name} for name in (*predictions, "acme__lib-8")]
    written = make_run_report(predictions, dataset, RUN, None, str(folder))
    shutil.copy(written, target / written.name)
    shutil.copytree(logs, target / "swebench-folder" / logs.name, dirs_exist_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
