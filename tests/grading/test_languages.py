"""Test what is read of tests in Go, Rust, Java and C++: names, expected values, and edits that expect the opposite."""

from collections.abc import Mapping

from bakeoff.grading.languages import read_compiled
from bakeoff.grading.written_tests import TestSource

GO = {
    "cases_test.go": """package x
type testCase struct { description string; phrase, expected string; wantErr bool }
var testCases = []testCase{
	{"a b", "b", "c", false},
	{description: "x y", expected: "y", wantErr: true},
}
""",
    "x_test.go": """package x
func TestTable(t *testing.T) {
	for _, tc := range testCases {
		t.Run(tc.description, func(t *testing.T) {
			got, err := F(tc.phrase)
			switch {
			case tc.wantErr:
				if err == nil { t.Fatal("no error") }
			case got != tc.expected:
				t.Fatalf("got %v", got)
			}
		})
	}
}
func check(t *testing.T, got, want int) { if got != want { t.Error("wrong") } }
func TestHelper(t *testing.T) { check(t, F(1), 5) }
func TestValues(t *testing.T) {
	want := []int{1, -2}
	if got := F(1); !reflect.DeepEqual(got, want) { t.Error("wrong") }
}
func TestTruth(t *testing.T) { if !Leap(2000) { t.Error("wrong") } }
func TestMap(t *testing.T) {
	for in, want := range map[string]int{"a": 1, "b": 2} {
		t.Run(in, func(t *testing.T) { if got := F(in); got != want { t.Error("wrong") } })
	}
}
""",
}
RUST = {
    "tests/x.rs": """
fn check(input: &str, expected: Option<u32>) { assert_eq!(f(input), expected); }
#[test]
fn variables() { let expected = "ABC"; let output = f(3); assert_eq!(output, expected); }
#[test]
#[ignore]
fn helper() { check("x", None); }
#[test]
fn containers() { assert_eq!(g("a", -1), Some(5u32), "a message"); }
#[test]
fn made() { assert_eq!(add(1), Clock::new(3, 4)); }
#[test]
fn truth() { assert!(leap(1)); }
#[test]
#[should_panic]
fn panics() { f(1); }
mod inner { #[test] fn words() { assert_eq!(kind(1), Kind::Big); } }
"""
}
JAVA = {
    "src/test/java/XTest.java": """class XTest {
  @Test public void chains() { int expected = 4; assertThat(f(1)).as("one").isEqualTo(expected); }
  @Test void lists() { assertThat(g(3)).containsExactly("a", "b"); }
  @Test void junit() { assertEquals("a", h(new int[]{1})); }
  @Test void truth() { assertThat(leap(2)).isTrue(); }
  @Test void errors() { assertThatExceptionOfType(Broken.class).isThrownBy(() -> f(-1)); }
  void notATest() {}
}"""
}
CPP = {
    "x_test.cpp": """#include "test/catch.hpp"
TEST_CASE("values (two)", "[tag]") { const std::string expected{"x"}; REQUIRE(expected == ns::f("a")); }
#if defined(EXERCISM_RUN_ALL_TESTS)
TEST_CASE("close") { REQUIRE(area(2) == Approx(1.25).margin(0.1)); }
TEST_CASE("numbers") { REQUIRE(7u == count(1)); }
TEST_CASE("truth") { REQUIRE_FALSE(leap(1)); }
TEST_CASE("errors") { REQUIRE_THROWS_AS(f(-1), std::domain_error); }
#endif
"""
}


def read(files: Mapping[str, str]) -> dict[str | None, tuple[str, TestSource]]:
    return {test.name: (file, test) for file, test in read_compiled(files)}


def values(test: TestSource) -> list[tuple[str, str]]:
    return [(value.text, value.comparison) for value in test.values]


def opposites(files: Mapping[str, str], name: str) -> list[tuple[str, str]]:
    file, test = read(files)[name]
    source = files[file].encode()
    return [(source[edit.start : edit.end].decode(), edit.text) for edit in test.opposites]


def test_each_row_of_a_table_in_go_is_a_test_named_like_its_subtest_in_the_file_of_the_table() -> None:
    found = read(GO)
    assert {name: file for name, (file, _) in found.items()} == {
        "TestTable/a_b": "cases_test.go",
        "TestTable/x_y": "cases_test.go",
        "TestHelper": "x_test.go",
        "TestValues": "x_test.go",
        "TestTruth": "x_test.go",
        "TestMap/a": "x_test.go",
        "TestMap/b": "x_test.go",
    }
    assert values(found["TestTable/x_y"][1]) == [("true", "equal"), ('"y"', "equal")]
    assert values(found["TestMap/b"][1]) == [("2", "equal")]


def test_what_go_compares_with_is_expected_also_through_variables_and_helpers() -> None:
    found = read(GO)
    assert values(found["TestHelper"][1]) == [("5", "equal")]
    assert [text for text, _ in values(found["TestValues"][1])] == ["[]int{1, -2}", "1", "2"]
    assert opposites(GO, "TestTruth") == [("!", "")]


def test_tests_of_rust_are_found_with_their_modules_and_values_without_the_suffix_of_their_type() -> None:
    found = read(RUST)
    assert list(found) == ["variables", "helper", "containers", "made", "truth", "panics", "inner::words"]
    assert values(found["variables"][1]) == [('"ABC"', "equal")]
    assert values(found["helper"][1]) == [("None", "equal")]
    assert values(found["containers"][1]) == [("Some(5u32)", "equal"), ("5", "equal")]
    assert values(found["made"][1])[0] == ("Clock::new(3, 4)", "made")
    assert values(found["inner::words"][1]) == [("Kind::Big", "equal")]
    assert opposites(RUST, "truth") == [("leap(1)", "!leap(1)")]
    assert opposites(RUST, "panics") == [("#[should_panic]", "")]


def test_assertions_of_assertj_and_junit_are_read() -> None:
    found = read(JAVA)
    assert list(found) == [f"XTest > {name}" for name in ("chains", "lists", "junit", "truth", "errors")]
    assert values(found["XTest > chains"][1]) == [("4", "equal")]
    assert values(found["XTest > lists"][1]) == [('"a"', "equal"), ('"b"', "equal")]
    assert values(found["XTest > junit"][1]) == [('"a"', "equal")]
    assert opposites(JAVA, "XTest > truth") == [("isTrue", "isFalse")]
    assert opposites(JAVA, "XTest > errors") == [("Broken.class", "java.util.zip.DataFormatException.class")]


def test_test_cases_of_catch_are_read_also_those_that_a_macro_switches_on() -> None:
    found = read(CPP)
    assert list(found) == ["values (two)", "close", "numbers", "truth", "errors"]
    assert values(found["values (two)"][1]) == [('{"x"}', "equal"), ('"x"', "equal")]
    assert values(found["close"][1]) == [("1.25", "close")]
    assert values(found["numbers"][1]) == [("7", "equal")]
    assert opposites(CPP, "truth") == [("REQUIRE_FALSE", "REQUIRE")]
    assert opposites(CPP, "errors") == [("std::domain_error", "std::bad_alloc")]


def test_a_comparison_is_negated_and_a_condition_is_not() -> None:
    assert [len(test.flips) for _, test in read(GO).values()] == [0, 0, 0, 1, 0, 0, 0]
    assert read_compiled({"a.txt": "", "test.go": "this is no Go {{{"}) == []
