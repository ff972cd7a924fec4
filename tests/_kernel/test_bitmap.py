"""One bit per trial."""

from hypothesis import given
from hypothesis import strategies as st

from bakeoff._kernel.bitmap import Bitmap


@given(
    st.integers(1, 100).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.booleans())))
    )
)
def test_a_bitmap_is_a_list_of_bools(given: tuple[int, list[tuple[int, bool]]]) -> None:
    size, changes = given
    bitmap, plain = Bitmap(size), [False] * size
    for index, value in changes:
        bitmap[index] = plain[index] = value
    assert [bitmap[index] for index in range(size)] == plain
    assert bitmap.count() == sum(plain)
