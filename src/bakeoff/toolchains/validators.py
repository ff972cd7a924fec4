"""Run a suite's validator in TypeScript or Python: `validate(code) -> {valid, errors}`."""

import json
import secrets
from typing import Any, Literal

from bakeoff.errors import GraderError
from bakeoff.plan import Limits
from bakeoff.protocols import Command, Sandbox
from bakeoff.sandbox import open_place
from bakeoff.toolchains.install import python_in
from bakeoff.toolchains.outcome import ValidationOutcome

LIMITS = Limits(memory_mb=1024, processes=64, disk_mb=64, output_kb=1024)
_MAX_ERRORS = 200
_MAX_ERROR_LENGTH = 2000

# Results go to a copy of the output, which the validator's own prints do not reach.
_HARNESS = """
import json, os, sys
asked = json.load(sys.stdin)
answers = os.dup(1)
os.dup2(2, 1)
try:
    names = {"__name__": "validator", "__file__": "validator.py"}
    exec(compile(asked["source"], "validator.py", "exec"), names)
    if not callable(names.get("validate")):
        raise LookupError("it defines no function `validate`")
    outcome = {"returned": names["validate"](asked["code"])}
    text = json.dumps(outcome)
except Exception as problem:
    text = json.dumps({"thrown": f"{type(problem).__name__}: {problem}"})
os.write(answers, (asked["proof"] + text).encode())
"""


async def validate(
    runner: Any, code: str, validator: str, kind: Literal["ts", "py"], seconds: float
) -> ValidationOutcome:
    """Run a validator on an answer. Raise `GraderError` if it throws, hangs or returns nonsense.

    Args:
        runner: An opened toolchain, which provides the sandbox or Node.
        code: The answer to check.
        validator: The source of the validator.
        kind: The language of the validator.
        seconds: The time limit.
    """
    if kind == "ts":
        if not hasattr(runner, "validate"):
            raise GraderError("a validator in TypeScript needs the Vitest toolchain")
        return await runner.validate(code, validator, seconds)  # type: ignore[no-any-return]
    sandbox: Sandbox = runner.sandbox
    proof = secrets.token_hex(16)
    question = json.dumps({"source": validator, "code": code, "proof": proof}).encode()
    async with open_place() as place:
        argv = (python_in(sandbox), "-I", "-B", "-c", _HARNESS)
        done = await sandbox.run(Command(argv, place, seconds, LIMITS, stdin=question))
    if done.stop != "exited":
        raise GraderError(f"the validator was ended by the {done.stop} limit")
    before, found, answer = done.stdout.decode(errors="replace").partition(proof)
    if not found or before:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        why = lines[-1][:_MAX_ERROR_LENGTH] if lines else f"exit code {done.exit_code}"
        raise GraderError(f"the validator ended without an answer: {why}")
    try:
        outcome = json.loads(answer)
    except (ValueError, RecursionError) as problem:
        raise GraderError("the validator's answer is not JSON") from problem
    return read_outcome(outcome)


def read_outcome(outcome: Any) -> ValidationOutcome:
    """Read `{returned: …}` or `{thrown: …}`, as written by both harnesses.

    Raise `GraderError` if the validator threw or returned something else: the suite is to blame.
    """
    if isinstance(outcome, dict) and "thrown" in outcome:
        raise GraderError(f"the validator failed: {str(outcome['thrown'])[:_MAX_ERROR_LENGTH]}")
    answer = outcome.get("returned") if isinstance(outcome, dict) else None
    errors = answer.get("errors", []) if isinstance(answer, dict) else None
    texts = errors if isinstance(errors, list) and all(isinstance(each, str) for each in errors) else None
    if texts is None or not isinstance(answer, dict) or not isinstance(answer.get("valid"), bool):
        shown = json.dumps(answer)[:200]
        raise GraderError(f"the validator must return {{valid: true or false, errors: [text, …]}}, not {shown}")
    return ValidationOutcome(
        valid=answer["valid"], errors=tuple(each[:_MAX_ERROR_LENGTH] for each in texts[:_MAX_ERRORS])
    )
