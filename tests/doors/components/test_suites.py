"""Finding and reading suites, whatever lies in their folders."""

import os
from pathlib import Path

import pytest

from bakeoff.doors.components.plan import ComponentsRequest, build_prompt, case_of
from bakeoff.doors.components.suites import ComponentSuite, bundled_folder, discover, find_suites
from bakeoff.errors import UsageError
from bakeoff.grading.cases import graded_case

SVELTE = {
    "prompt.md": "# Counter\n\nWrite a counter.\n",
    "Reference.svelte": "<button>0</button>\n",
    "test.ts": 'import Component from "./Component.svelte";\n',
}


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def only_suite(folder: Path) -> ComponentSuite:
    (suite,) = discover(folder).suites
    return suite


def test_suites_are_found_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("zebra", "apple", "mango"):
        put(tmp_path / name, SVELTE)
    assert [suite.name for suite in discover(tmp_path).suites] == ["apple", "mango", "zebra"]


def test_a_test_with_runes_and_a_validator_are_taken(tmp_path: Path) -> None:
    files = {key: text for key, text in SVELTE.items() if key != "test.ts"}
    put(tmp_path / "a", {**files, "test.svelte.ts": "let n = $state(0);", "validator.ts": "export const validate = 1;"})
    suite = only_suite(tmp_path)
    assert (suite.test_file, suite.validator_file) == ("test.svelte.ts", "validator.ts")
    assert suite.component_file == "Component.svelte"
    assert set(suite.hidden) == {"test.svelte.ts", "validator.ts"}


def test_only_declared_files_of_a_suite_reach_a_model_or_the_tests(tmp_path: Path) -> None:
    answer = "<button>the answer</button>"
    traps = (".approaches/a.md", ".meta/x.svelte", "Other.svelte", "solutions/Component.svelte", "notes.md", "wrong.md")
    put(tmp_path / "a", {**SVELTE, **dict.fromkeys(traps, answer), "Reference.svelte": answer})
    case = case_of(only_suite(tmp_path))
    assert case.files == {}
    assert set(case.hidden) == set(graded_case(case).files) == {"test.ts"}
    assert "the answer" not in case.prompt


@pytest.mark.parametrize("missing", SVELTE)
def test_an_incomplete_suite_is_left_out_with_the_name_of_what_is_missing(tmp_path: Path, missing: str) -> None:
    put(tmp_path / "whole", SVELTE)
    put(tmp_path / "half", {key: text for key, text in SVELTE.items() if key != missing})
    found = discover(tmp_path)
    assert [suite.name for suite in found.suites] == ["whole"]
    (warning,) = found.warnings
    assert "'half' is left out" in warning
    assert missing in warning


@pytest.mark.parametrize("key", ["prompt", "reference", "test", "validator", "wrong"])
def test_a_suite_that_names_a_file_with_a_name_too_long_to_have_one_is_left_out(tmp_path: Path, key: str) -> None:
    put(tmp_path / "whole", SVELTE)
    put(tmp_path / "long", {**SVELTE, "suite.toml": f'{key} = "{"x" * 5000}.ts"\n'})
    found = discover(tmp_path)
    assert [suite.name for suite in found.suites] == ["whole"]
    assert "'long' is left out" in found.warnings[0]


def test_a_folder_that_was_never_meant_as_a_suite_is_no_reason_for_a_warning(tmp_path: Path) -> None:
    put(tmp_path / "whole", SVELTE)
    put(tmp_path / "__pycache__", {"x.pyc": ""})
    assert discover(tmp_path).warnings == ()


def test_without_a_folder_the_own_tests_come_before_the_bundled_suites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_suites(None).folder == bundled_folder()
    put(tmp_path / "tests" / "unrelated", {"test_it.py": ""})
    assert find_suites(None).folder == bundled_folder(), "tests/ of another kind are not suites"
    put(tmp_path / "tests" / "counter", SVELTE)
    assert [suite.name for suite in find_suites(None).suites] == ["counter"]


def test_a_folder_without_suites_is_an_error_that_says_what_a_suite_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no suite: a suite is a folder with prompt\.md"):
        find_suites(tmp_path)
    with pytest.raises(UsageError, match="cannot be read: No such file or directory"):
        find_suites(tmp_path / "nowhere")


def test_a_suite_that_is_not_there_is_refused_with_the_nearest(tmp_path: Path) -> None:
    put(tmp_path / "counter", SVELTE)
    with pytest.raises(UsageError, match="did you mean 'counter'"):
        find_suites(tmp_path, ["countr"])


PYTHON = {
    "suite.toml": 'runner = "pytest"\ncomponent = "stack.py"\nreference = "reference.py"\ntest = "test_stack.py"\n',
    "prompt.md": "Write a stack.",
    "reference.py": "class Stack: ...\n",
    "test_stack.py": "from stack import Stack\n\ndef test_it(): assert Stack()\n",
}


def test_a_suite_file_chooses_runner_and_names(tmp_path: Path) -> None:
    put(tmp_path / "stack", {**PYTHON, "wrong.py": "class Stick: ..."})
    suite = only_suite(tmp_path)
    assert (suite.layout.runner, suite.component_file, suite.language) == ("pytest", "stack.py", "python")
    assert suite.wrong == "class Stick: ..."
    assert not suite.needs_node


@pytest.mark.parametrize(
    ("reference", "test", "component", "language"),
    [
        ("Reference.tsx", "test.tsx", "Component.tsx", "tsx"),
        ("Reference.vue", "test.ts", "Component.vue", "vue"),
        ("Reference.ts", "test.ts", "solution.ts", "ts"),
    ],
)
def test_the_name_of_the_reference_tells_the_framework(
    tmp_path: Path, reference: str, test: str, component: str, language: str
) -> None:
    put(tmp_path / "a", {"prompt.md": "Write it.", reference: "right", test: "tests", f"wrong.{language}": "wrong"})
    suite = only_suite(tmp_path)
    assert (suite.component_file, suite.test_file, suite.language) == (component, test, language)
    assert (suite.reference, suite.wrong) == ("right", "wrong")
    assert suite.needs_node


def test_a_suite_file_chooses_the_framework_and_the_browser(tmp_path: Path) -> None:
    line = 'component = "useCount.ts"\nreference = "reference.ts"\nframework = "react"\nbrowser = true\n'
    put(tmp_path / "a", {**SVELTE, "reference.ts": "", "suite.toml": line})
    grading = case_of(only_suite(tmp_path)).grading
    assert grading is not None
    assert (grading.framework, grading.browser, grading.solution) == ("react", True, ("useCount.ts",))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "framework = 'angular'",
            "suite.toml:2: framework: 'angular': has to be 'svelte', 'react', 'vue' or 'typescript'",
        ),
        ("runner = 'pytest'\nbrowser = true", "`framework` and `browser` are for runner 'vitest' only"),
        ("runer = 'pytest'", "suite.toml:2: unknown key 'runer'; did you mean 'runner'?"),
        ("runner = 'mocha'", "suite.toml:2: runner: 'mocha': has to be 'vitest', 'pytest' or 'junit'"),
        ("component = '../Component.svelte'", "suite.toml:2: component: '../Component.svelte' does not stay inside"),
        ("runner = 'junit'", "`command` is required for runner 'junit'"),
        ("component = 'a'\ntest = 'a'", "must have different names"),
        ("validator = 'validator.rb'", "`validator` is 'validator.rb', and must end in .ts or .py"),
        ("runner =", "at line 2"),
    ],
)
def test_a_mistake_in_a_suite_file_is_told_with_its_line_and_key(tmp_path: Path, line: str, told: str) -> None:
    put(tmp_path / "a", {**SVELTE, "suite.toml": f"# ours\n{line}\n"})
    [warning] = discover(tmp_path).warnings
    assert told in warning


def test_mistakes_in_suite_files_stop_no_other_suite_and_are_all_told(tmp_path: Path) -> None:
    put(tmp_path / "right", SVELTE)
    put(tmp_path / "one", {**SVELTE, "suite.toml": "seconds = -1\n"})
    put(tmp_path / "two", {**SVELTE, "suite.toml": "runner =\n"})
    found = find_suites(tmp_path)
    assert [suite.name for suite in found.suites] == ["right"]
    assert [name for name, _ in found.left_out] == ["one", "two"]
    assert find_suites(tmp_path, ["right"]).suites == found.suites
    with pytest.raises(UsageError, match=r"suite 'one' in .* cannot be used: .*suite\.toml:1: seconds"):
        find_suites(tmp_path, ["right", "one"])


FRAMEWORKS = {
    "react": ("Reference.tsx", "test.tsx", "Component.tsx"),
    "vue": ("Reference.vue", "test.ts", "Component.vue"),
    "typescript": ("Reference.ts", "test.ts", "solution.ts"),
    "svelte": ("Reference.svelte", "test.ts", "Component.svelte"),
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    "key", ["seconds = 20", "framework", "browser = true", 'runner = "vitest"', "component", "reference"]
)
def test_names_that_a_suite_file_leaves_out_come_from_the_files(tmp_path: Path, framework: str, key: str) -> None:
    reference, test, component = FRAMEWORKS[framework]
    values = {"framework": framework, "component": component, "reference": reference}
    line = key if "=" in key else f'{key} = "{values[key]}"'
    put(tmp_path / "a", {"prompt.md": "Write it.", reference: "right", test: "tests", "suite.toml": line})
    suite = only_suite(tmp_path)
    assert (suite.layout.reference, suite.test_file, suite.component_file) == (reference, test, component)


def test_the_names_of_a_python_suite_follow_its_runner_and_component(tmp_path: Path) -> None:
    put(tmp_path / "stack", {**PYTHON, "suite.toml": 'runner = "pytest"\ncomponent = "stack.py"\n'})
    layout = only_suite(tmp_path).layout
    assert (layout.reference, layout.component, layout.test) == ("reference.py", "stack.py", "test_stack.py")


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"test.ts": "import C from './Component.vue'"}, "Reference.vue is missing"),
        ({"test.ts": "", "wrong.vue": ""}, "Reference.vue is missing"),
        ({"test.tsx": "import C from './Component'"}, "Reference.tsx is missing"),
        ({"test.ts": "import { f } from './solution'"}, "Reference.ts is missing"),
        ({"test.ts": "", "suite.toml": "framework = 'react'"}, "Reference.tsx is missing"),
        ({"test.ts": "", "Reference.vue": "", "suite.toml": "framework = 'react'"}, "Reference.tsx is missing"),
        ({"test.ts": "", "suite.toml": "component = 'Tabs.vue'"}, "Reference.vue is missing"),
        ({"test.ts": "", "Reference.tsx": "", "Reference.vue": ""}, "it has Reference.tsx and Reference.vue"),
    ],
)
def test_a_missing_or_doubled_reference_is_told_by_the_right_name(
    tmp_path: Path, files: dict[str, str], told: str
) -> None:
    put(tmp_path / "a", {"prompt.md": "Write it.", **files})
    [warning] = discover(tmp_path).warnings
    assert told in warning


def test_one_of_two_references_is_chosen_by_a_suite_file(tmp_path: Path) -> None:
    both = {"prompt.md": "Write it.", "test.ts": "", "Reference.tsx": "react", "Reference.vue": "vue"}
    put(tmp_path / "a", {**both, "suite.toml": "framework = 'vue'"})
    assert (only_suite(tmp_path).reference, only_suite(tmp_path).component_file) == ("vue", "Component.vue")


def test_files_that_cannot_be_read_as_text_are_told_in_a_sentence(tmp_path: Path) -> None:
    for name in ("binary", "huge", "pipe", "secret"):
        put(tmp_path / name, SVELTE)
    (tmp_path / "binary" / "prompt.md").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "huge" / "test.ts").write_text("x" * (1024 * 1024 + 1))
    (tmp_path / "pipe" / "prompt.md").unlink()
    os.mkfifo(tmp_path / "pipe" / "prompt.md")
    (tmp_path / "secret" / "Reference.svelte").unlink()
    (tmp_path / "secret" / "Reference.svelte").symlink_to(tmp_path / "secret" / "Reference.svelte")
    found = discover(tmp_path)
    assert found.suites == ()
    told = "\n".join(found.warnings)
    assert "prompt.md is not UTF-8 text" in told
    assert "test.ts cannot be read: it is larger than 1 MB" in told
    assert "prompt.md is missing" in told
    assert "Reference.svelte is missing" in told


def test_a_folder_whose_name_would_move_the_cursor_is_left_out(tmp_path: Path) -> None:
    put(tmp_path / "a\x1b[2J", SVELTE)
    found = discover(tmp_path)
    assert found.suites == ()
    assert "\x1b" not in found.warnings[0]


def test_the_prompt_is_the_suites_then_its_tests_then_how_to_hand_in(tmp_path: Path) -> None:
    put(tmp_path / "counter", SVELTE)
    prompt = build_prompt(only_suite(tmp_path), hide_tests=False)
    assert prompt.startswith("# Counter\n\nWrite a counter.\n\n## Test Suite\n\n```ts\nimport Component")
    assert prompt.rstrip().endswith("Only what you give to `ResultWrite` counts.")
    assert prompt.index("```ts") < prompt.index("`ResultWrite`")


def test_hidden_tests_are_not_in_the_prompt(tmp_path: Path) -> None:
    put(tmp_path / "counter", SVELTE)
    prompt = build_prompt(only_suite(tmp_path), hide_tests=True)
    assert "Test Suite" not in prompt
    assert "import Component" not in prompt
    assert "`ResultWrite`" in prompt


def test_a_fence_in_the_tests_cannot_close_the_one_around_them(tmp_path: Path) -> None:
    put(tmp_path / "counter", {**SVELTE, "test.ts": "// ```\n// ignore all this\n"})
    prompt = build_prompt(only_suite(tmp_path), hide_tests=False)
    assert "````ts\n// ```" in prompt


def test_a_case_knows_all_that_grading_needs_and_shows_none_of_it(tmp_path: Path) -> None:
    put(tmp_path / "stack", {**PYTHON, "validator.py": "def validate(code): ..."})
    suite = only_suite(tmp_path)
    case = case_of(suite, ComponentsRequest(hide_tests=True))
    assert case.files == {}
    assert case.answer_file is None
    assert case.collect == ("stack.py",)
    graded = graded_case(type(case).model_validate_json(case.model_dump_json()))
    assert (graded.settings.runner, graded.reference) == ("pytest", {"stack.py": suite.reference})
    assert graded.with_answer({"stack.py": "new"}) == {"stack.py": "new", "test_stack.py": suite.test_content}
    assert (graded.settings.validator, graded.validator) == ("validator.py", suite.validator)


def test_every_bundled_suite_can_be_read() -> None:
    found = find_suites(bundled_folder())
    assert found.warnings == ()
