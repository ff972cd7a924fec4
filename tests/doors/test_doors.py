"""The seam between the doors and the commands that serve them all."""

import pytest

from bakeoff.bundled.demo import demo_plan
from bakeoff.doors import Door, door_of
from bakeoff.errors import UsageError


def test_a_plan_that_no_door_made_has_the_plain_door():
    assert type(door_of(demo_plan(with_model=False))) is Door


def test_a_plan_of_an_unknown_door_is_refused_with_the_doors_there_are():
    plan = demo_plan(with_model=False).model_copy(update={"door": "cellar"})
    with pytest.raises(UsageError, match="'cellar', which this version does not know: it knows components"):
        door_of(plan)


def test_the_door_of_a_plan_moves_no_key():
    plan = demo_plan(with_model=False)
    other = plan.model_copy(update={"door": "components", "settings": {"test_tool": True}})
    assert [trial.score_key for trial in plan.trials()] == [trial.score_key for trial in other.trials()]
