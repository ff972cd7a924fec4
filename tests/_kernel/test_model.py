"""Fingerprints, and data that cannot change."""

import copy
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff.plan import Case, Limits

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, json_values)
def test_fingerprints_are_equal_for_equal_json_alone(one: Any, other: Any) -> None:
    same = repr(_ordered(one)) == repr(_ordered(other))
    assert (fingerprint(one) == fingerprint(other)) is same


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def test_a_fingerprint_of_something_that_is_not_data_is_refused() -> None:
    assert fingerprint(Limits()) == fingerprint(Limits().model_dump())
    with pytest.raises(TypeError, match="object has no fingerprint"):
        fingerprint(object())


def test_what_cannot_change_is_not_copied() -> None:
    limits = Limits()
    assert copy.deepcopy([limits])[0] is limits
    assert limits == Limits()
    assert limits != Limits(memory_mb=1)
    assert len({limits, Limits()}) == 1
    with pytest.raises(ValueError, match="frozen"):
        limits.memory_mb = 2  # type: ignore[misc]


def test_a_changed_copy_has_keys_of_its_own() -> None:
    case = Case(id="c", prompt="one")
    before = case.attempt_digest
    assert case.model_copy(update={"prompt": "two"}).attempt_digest != before
    assert case.model_copy().attempt_digest == before


def test_models_are_built_once_by_threads_that_use_them_first_at_the_same_time() -> None:
    for _ in range(20):

        class Inner(FrozenModel):
            number: int = 0

        class Outer(FrozenModel):
            inner: Inner
            numbers: dict[str, tuple[Inner, ...]] = {}

        together = threading.Barrier(8)
        made: list[Outer] = []

        def make(
            outer: type[Outer] = Outer,
            inner: type[Inner] = Inner,
            made: list[Outer] = made,
            start: threading.Barrier = together,
        ) -> None:
            start.wait()
            made.append(outer(inner=inner(number=3)))

        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [one.inner.number for one in made] == [3] * 8
