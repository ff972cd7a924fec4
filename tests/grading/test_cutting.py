"""Cutting tests out of test files, so that a share of them can be hidden."""

from itertools import combinations
from pathlib import Path

import pytest

from bakeoff import bundled
from bakeoff.grading.cutting import cut_tests, hide_share
from bakeoff.grading.syntax import parse
from bakeoff.grading.written_tests import find_tests

PYTHON = '''\
import unittest

import pytest


class LeapTest(unittest.TestCase):
    def setUp(self):
        self.years = [1996]

    # It is divisible by four.
    # And not by a hundred.
    def test_leap(self):
        self.assertTrue(self.years)

    @unittest.skip("later")
    def test_common(self):
        self.assertFalse(0)  # at the end


class OnlyTest(unittest.TestCase):
    """Has one test."""

    def test_alone(self):
        pass


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (1, 2),
        (2, 4),
    ],
)
def test_table(given, wanted):
    assert 2 * given == wanted
'''

TYPESCRIPT = """\
import { describe, expect, it, test } from 'vitest'
import { double } from './double'

// about the whole file
const cases = [1, 2]

describe('double', () => {
  // of nothing
  it('zero', () => {
    expect(double(0)).toBe(0)
  })

  describe('inner', () => {
    test.each([
      [1, 2],
      [2, 4],
    ])('%i', (given, wanted) => {
      expect(double(given)).toBe(wanted)
    })
  })

  it('one', () => { expect(double(1)).toBe(2) }); it('two', () => { expect(double(2)).toBe(4) })
})

cases.forEach((each) => it(`case ${each}`, () => expect(double(each)).toBe(2 * each)))
for (const each of cases) {
  it(`again ${each}`, async () => { expect(double(each)).toBe(2 * each) })
}
"""


def test_a_python_test_goes_with_its_decorators_and_comments() -> None:
    cut = cut_tests("leap_test.py", PYTHON, {0, 1, 3})
    for gone in ("test_leap", "divisible", "not by a hundred", "skip", "at the end", "parametrize", "(2, 4)"):
        assert gone not in cut
    assert [test.name for test in find_tests("leap_test.py", cut)] == ["OnlyTest > test_alone"]
    assert "self.years = [1996]" in cut
    compile(cut, "leap_test.py", "exec")


def test_a_class_with_nothing_but_tests_goes_with_the_last() -> None:
    source = "class TestA:\n    def test_a(self): ...\n\n    def test_b(self): ...\n\n\ndef test_c(): ...\n"
    assert cut_tests("a_test.py", source, {0, 1}) == "def test_c(): ...\n"


def test_a_typescript_test_goes_with_its_whole_statement() -> None:
    cut = cut_tests("a.test.ts", TYPESCRIPT, {0, 1, 2})
    for gone in ("zero", "of nothing", "inner", "test.each", "[2, 4]", "'one'"):
        assert gone not in cut
    for left in ("about the whole file", "'two'", "case ${each}", "again ${each}"):
        assert left in cut
    assert "cases.forEach" not in cut_tests("a.test.ts", TYPESCRIPT, {4})


@pytest.mark.parametrize(("name", "source"), [("leap_test.py", PYTHON), ("a.test.ts", TYPESCRIPT)])
def test_whatever_is_cut_the_rest_is_a_file_with_the_other_tests(name: str, source: str) -> None:
    count = len(find_tests(name, source))
    for size in range(1, count):
        for hidden in combinations(range(count), size):
            cut = cut_tests(name, source, hidden)
            assert not parse(name, cut).has_error, (hidden, cut)
            assert len(find_tests(name, cut)) == count - size, (hidden, cut)


def test_every_bundled_test_file_can_be_cut() -> None:
    folder = Path(bundled.__file__).parent
    files = [path for path in folder.rglob("*.[pt][ys]") if not path.is_relative_to(folder / "attacks")]
    tests = [path for path in files if "test" in path.name and not {".meta", "starters"} & set(path.parts)]
    texts = {str(path): path.read_text() for path in tests}
    assert len(texts) >= 50
    for name, text in texts.items():
        count = len(find_tests(name, text))
        for share in (0.3, 0.9):
            cut = hide_share({name: text}, [name], share, "seed").get(name, text)  # one test is never hidden
            assert not parse(name, cut).has_error, (name, cut)
            assert count - len(find_tests(name, cut)) == pytest.approx(share * count, abs=1)


def test_the_same_seed_hides_the_same_tests_and_a_larger_share_hides_them_too() -> None:
    files = {"leap_test.py": PYTHON, "a.test.ts": TYPESCRIPT, "cases.ts": ""}

    def left(share: float, seed: str = "a") -> set[str]:
        shown = {**files, **hide_share(files, list(files), share, seed)}
        return {line for text in shown.values() for line in text.splitlines()}

    assert left(0.3) == left(0.3)
    assert left(0.8) < left(0.3) < left(0)
    assert len({frozenset(left(0.5, str(seed))) for seed in range(8)}) > 1


def test_one_test_is_always_left_and_a_single_test_is_never_hidden() -> None:
    two = "def test_a(): ...\n\n\ndef test_b(): ...\n"
    for share in (0.01, 0.99):
        [cut] = hide_share({"t.py": two}, ["t.py"], share, "a").values()
        assert len(find_tests("t.py", cut)) == 1
    assert hide_share({"t.py": "def test_a(): ...\n"}, ["t.py"], 0.5, "a") == {}
    assert hide_share({"t.py": two}, ["t.py"], 0, "a") == {}
