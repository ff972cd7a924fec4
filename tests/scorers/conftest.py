from collections.abc import Iterator

import pytest

from bakeoff.models.providers import register_provider

from .obedient import ObedientJudge


@pytest.fixture
def obedient() -> Iterator[ObedientJudge]:
    judge = ObedientJudge()
    take_back = register_provider("obedient", judge)
    yield judge
    take_back()
