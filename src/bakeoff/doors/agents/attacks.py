"""The subject `cheat` of exercises: it runs one attack in the trial's sandbox, as an agent would.

All attacks must fail, and each is reported as what it was.
"""

from dataclasses import dataclass

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import UsageError
from bakeoff.grading.attacks import SAMPLE, Attack, attack_names, attack_on
from bakeoff.grading.cases import GradedCase, graded_case
from bakeoff.plan import Case, SubjectSpec, describe, read_options
from bakeoff.protocols import Needs, Task
from bakeoff.record import Transcript
from bakeoff.subjects.agent_launch import AgentLaunch, carry_out
from bakeoff.subjects.agent_run import with_run

_UNFIT = "it did nothing: the attack is one on another language"


class ExerciseCheatOptions(FrozenModel):
    attack: str | None = None
    attacks: dict[str, str] = {}  # by case


@dataclass(frozen=True, slots=True)
class BoundExerciseCheat:
    """One attack on one exercise, or none if it does not fit the language."""

    attack: Attack | None
    case: GradedCase
    needs: Needs = Needs(workspace=True)  # noqa: RUF009 - frozen

    async def attempt(self, task: Task) -> Transcript:
        script = self.attack.script(self.case) if self.attack else "true"
        run = await carry_out(task, AgentLaunch(("/bin/sh", "-c", script)))
        described = run.model_copy(update={"attack": self.attack.what if self.attack else _UNFIT})
        return with_run(Transcript(output=run.stdout), described)


@dataclass(frozen=True, slots=True)
class ExerciseCheat:
    """A control that is bound to the case. Its attacks use nothing of the case that an agent does not see."""

    options: ExerciseCheatOptions

    @classmethod
    def from_spec(cls, spec: SubjectSpec) -> "ExerciseCheat":
        options = read_options(spec, ExerciseCheatOptions)
        for name in filter(None, [options.attack, *options.attacks.values()]):
            if name not in attack_names():
                raise UsageError(f"{describe(spec)}: no attack {name!r}; there are {', '.join(attack_names())}")
        return cls(options)

    def bind(self, case: Case) -> BoundExerciseCheat:
        graded = graded_case(case)
        name = self.options.attacks.get(case.id) or self.options.attack or SAMPLE[0]
        return BoundExerciseCheat(attack_on(graded, name), graded)
