"""Run a Python function as a subject. It gets the prompt, and its return value is the output."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import JsonValue

from bakeoff._kernel.imports import import_target, revision_of, target_of
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.threads import call
from bakeoff.errors import SubjectError
from bakeoff.plan import SubjectSpec, describe, read_options
from bakeoff.protocols import Task
from bakeoff.record import Transcript


class FunctionSubjectOptions(FrozenModel):
    """The options of the kind `function`. `target` is the name, as `module:function`."""

    target: str


@dataclass(frozen=True, slots=True)
class FunctionSubject:
    """A callable `(prompt) -> JSON value or Transcript`, sync or async."""

    function: Callable[[str], Any]
    # Exceptions are the subject's failures, not those of the infrastructure.
    raises_its_own_errors: ClassVar[bool] = True

    @classmethod
    def from_spec(cls, spec: SubjectSpec) -> Self:
        """Import the function. Raise `UsageError` if that fails."""
        return cls(import_target(read_options(spec, FunctionSubjectOptions).target, describe(spec)))

    async def attempt(self, task: Task) -> Transcript:
        """Call the function with the prompt. Its exceptions count as the subject's failures."""
        try:
            answer: Transcript | JsonValue = await call(self.function, task.prompt)
        except SystemExit as error:
            raise SubjectError(f"called sys.exit({error.code!r})") from error
        return answer if isinstance(answer, Transcript) else Transcript(output=answer)


def function_subject(function: Callable[[str], Any], name: str | None = None) -> SubjectSpec:
    """Return the spec for a function that can be imported by name.

    `name` is used in reports; by default, the function's name. The spec has a hash of the
    function's source, so that resuming repeats trials of an edited function.
    """
    target = target_of(function)
    return SubjectSpec(
        kind="function",
        name=name or target.partition(":")[2],
        options={"target": target},
        revision=revision_of(function),
    )
