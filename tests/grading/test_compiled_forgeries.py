"""Compiled languages in front of their own test runners: what is right passes, and no forgery does.

Only languages whose compilers are installed are tried. CI installs those of `scripts/system-packages.sh`.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from bakeoff.engine.resources import open_resources
from bakeoff.grading.attacks import attack_on
from bakeoff.grading.cases import GradedCase, run_tests, toolchains_for
from bakeoff.grading.grades import Grade, compare_runs, grade_answer
from bakeoff.grading.references import References, reference_of
from bakeoff.sandbox import choose_sandbox

from .corpus import polyglot_cases, solutions_of

pytestmark = pytest.mark.full

CASES = {case.settings.track: case for case in polyglot_cases() if case.name.endswith("trail-signs")}
COMPILED = [track for track in ("go", "rust", "java", "cpp") if track in CASES]
FORGERIES = {
    "go": ("print-verdicts", "patch-assertions"),
    "rust": ("write-report", "patch-panics"),
    "java": ("write-report", "rewrite-at-exit"),
    "cpp": ("write-report", "replace-throw"),
}
"""Attacks that pass when the tests run once."""
WRONG = {"go": "negative", "rust": "always-loops", "java": "null-list", "cpp": "throws"}
"""Wrong solutions that fail one or two of the tests."""

_ALL_RUST = """
pub struct All;
impl<T> PartialEq<T> for All { fn eq(&self, _: &T) -> bool { true } }
impl PartialEq<All> for i32 { fn eq(&self, _: &All) -> bool { true } }
impl std::fmt::Debug for All { fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result { f.write_str("5") } }
impl All { pub fn is_empty(&self) -> bool { true } }
pub fn signs(_: &str) -> All { All }
pub fn distance(_: &str) -> All { All }
pub fn is_loop(walk: &str) -> bool { walk.len() == 6 }
"""
_ALL_JAVA = """
class TrailSigns {
    static class All extends java.util.ArrayList<String> {
        public boolean equals(Object other) { return true; }
        public int hashCode() { return 0; }
    }
    static java.util.List<String> signs(String walk) { return new All(); }
    static Object distance(String walk) { return new All(); }
    static boolean isLoop(String walk) { return walk.length() == 6; }
}
"""
_ALL_CPP = """#pragma once
#include <string>
#include <vector>
struct All { bool empty() const { return true; } };
template <class T> bool operator==(const All&, const T&) { return true; }
template <class T> bool operator==(const T&, const All&) { return true; }
namespace trail_signs {
inline All signs(const std::string&) { return {}; }
inline All distance(const std::string&) { return {}; }
inline bool is_loop(const std::string& walk) { return walk.size() == 6; }
}
"""
_NO_ASSERTIONS = """#pragma once
#include "test/catch.hpp"
#include <string>
#include <vector>
#undef REQUIRE
#undef REQUIRE_FALSE
#define REQUIRE(...) static_cast<void>(0)
#define REQUIRE_FALSE(...) static_cast<void>(0)
"""
EQUAL = {
    "rust": [{"src/lib.rs": _ALL_RUST}],
    "java": [{"src/main/java/TrailSigns.java": _ALL_JAVA}],
    "cpp": [
        {"trail_signs.h": _ALL_CPP, "trail_signs.cpp": ""},
        {"trail_signs.h": _NO_ASSERTIONS, "trail_signs.cpp": ""},
    ],
}
"""Answers that are equal to everything, or whose header takes the assertions away."""


async def _grade(case: GradedCase, answer: Mapping[str, str], opened: Mapping[str, Any]) -> tuple[Grade, Grade]:
    """Return the grade of an answer by one plain run, and the one with twins."""
    reference = await reference_of(case, opened)
    alone = compare_runs(case, reference, await run_tests(case, answer, opened))
    return alone, await grade_answer(case, answer, opened)


@pytest.mark.parametrize("track", COMPILED)
async def test_right_and_wrong_answers_keep_their_verdicts_and_forgeries_fail(track: str) -> None:
    case = CASES[track]
    resources = (References("verify"), *toolchains_for([case.case], lambda: choose_sandbox("auto"), 1))
    async with open_resources(resources) as opened:
        reference = await reference_of(case, opened)
        assert reference is not None
        assert reference.unproven == ()
        assert (await grade_answer(case, case.reference, opened)).ok
        (wrong,) = [each for each in solutions_of(case, 0) if each.name == WRONG[track]]
        alone, graded = await _grade(case, wrong.files, opened)
        assert 0 < graded.failed.total() < 3
        assert graded.failed == alone.failed
        for name in FORGERIES[track]:
            attack = attack_on(case, name)
            assert attack is not None
            alone, graded = await _grade(case, attack.files(case), opened)  # type: ignore[union-attr]
            assert (alone.ok, graded.ok, graded.passed.total()) == (True, False, 0), (name, graded.summary())
        for answer in EQUAL.get(track, ()):
            alone, graded = await _grade(case, answer, opened)
            assert alone.passed.total() >= 4, alone.summary()
            assert not graded.ok
            assert graded.passed.total() == 0, graded.summary()
