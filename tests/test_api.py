"""The public names of `bakeoff`."""

import re
import subprocess
import sys
from pathlib import Path

import bakeoff

PUBLIC = """
    BakeoffError Case EvalCase EvalOutcome EvalRun GraderError InfraError Limits Needs Plan PlanError Record Registry
    Resource RunControl RunEval RunFolder RunOptions Score ScoreInput Scorer ScorerSpec Step Subject SubjectError
    SubjectSpec Summary Task TaskResult ToEval Tool ToolCall Transcript UntilDecided Usage UsageError Verdict
    __version__ default_registry describe_eval eval_suite evaluate_mcp evaluate_mcp_async find_run function_scorer
    function_subject log_input log_output log_score new_run_folder register_provider replayable run summarise
"""
DOCS = Path(__file__).parent.parent / "docs" / "reference" / "api.md"


def test_the_public_names_are_exactly_these() -> None:
    assert bakeoff.__all__ == PUBLIC.split()
    assert dir(bakeoff) == PUBLIC.split()


def test_every_public_name_is_there_and_is_not_a_module() -> None:
    found = {name: getattr(bakeoff, name) for name in bakeoff.__all__}
    assert [name for name, value in found.items() if type(value).__name__ == "module"] == []


def test_the_docs_list_every_public_name_once_with_a_line_about_it() -> None:
    listed = re.findall(r"^\| `(\w+)` \| \S.* \|$", DOCS.read_text(), re.MULTILINE)
    assert sorted([*listed, "__version__"]) == sorted(bakeoff.__all__)


def test_public_functions_and_classes_say_what_they_do() -> None:
    silent = [name for name in bakeoff.__all__ if not (getattr(bakeoff, name).__doc__ or "").strip()]
    assert silent == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(bakeoff, "no_such_name")


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, bakeoff; print([m for m in sys.modules if m.split('.')[0] in ('pydantic', 'rich', 'scipy')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
