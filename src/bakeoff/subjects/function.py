"""Judge a Python function: it gets the prompt, and its return value is the output."""

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
    """The options of a subject of the kind `function`: `target` names it as `module:function`."""

    target: str


@dataclass(frozen=True, slots=True)
class FunctionSubject:
    """A callable `(prompt) -> JSON value or Transcript`, sync or async."""

    function: Callable[[str], Any]
    # An exception is a result of the subject, not a fault of the infrastructure.
    raises_its_own_errors: ClassVar[bool] = True

    @classmethod
    def from_spec(cls, spec: SubjectSpec) -> Self:
        """Import the function that the spec names. Raises `UsageError` if that fails."""
        return cls(import_target(read_options(spec, FunctionSubjectOptions).target, describe(spec)))

    async def attempt(self, task: Task) -> Transcript:
        """Call the function with the prompt. Its exceptions are the subject's own errors."""
        try:
            answer: Transcript | JsonValue = await call(self.function, task.prompt)
        except SystemExit as error:
            raise SubjectError(f"called sys.exit({error.code!r})") from error
        return answer if isinstance(answer, Transcript) else Transcript(output=answer)


def function_subject(function: Callable[[str], Any], name: str | None = None) -> SubjectSpec:
    """Return the spec of a function that can be imported by name.

    `name` is the name in reports; the default is the function's own name. The spec has a hash of the function's source,
    so that a resumed run asks an edited function again.
    """
    target = target_of(function)
    return SubjectSpec(
        kind="function",
        name=name or target.partition(":")[2],
        options={"target": target},
        revision=revision_of(function),
    )
