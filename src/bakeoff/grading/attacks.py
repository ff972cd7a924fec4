"""Read the attacks of the `cheat` subject: all known ways to pass tests without solving them.

All attacks must fail. They are files in `bundled/attacks/`: solutions that attack the tests from
inside their process (`python`, `jest`, `vitest`, `modules`, `javascript`, `go`, `rust`, `java` and
`cpp`), and scripts that change the files around a solution, as agents can (`workspace`). `make
hostile` runs all attacks in every sandbox.
"""

import hashlib
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from bakeoff.grading.cases import GradedCase

Family = Literal["patch", "report", "value", "process", "guess", "search", "state", "dom", "files"]
FAMILIES: dict[Family, str] = {
    "patch": "change what the tests are built on: assertions, the test runner, the language",
    "report": "change or forge the report on its way out",
    "value": "return values that compare as whatever is expected",
    "process": "end, stop or flood the process, so that no failure is told",
    "guess": "claim results by looking at the tests, or by chance",
    "search": "look for the answers: on disk, in memory, in other processes",
    "state": "tell one run of the tests about the other",
    "dom": "change the document that the tests look at",
    "files": "change the files around the solution, as an agent can",
}
Rung = Literal["process", "bwrap"]
Build: TypeAlias = Callable[[str, GradedCase, str], str]
"""Returns the text of one solution file, from the program, the case and the name of the file."""

SLOW = frozenset({"loop-forever"})
"""Attacks that take as long as the tests may take. `cheat` tries them only when they are named."""

SAMPLE = ("edit-tests", "conftest", "forged-report", "exit-early", "patch-assertions", "read-expected", "claim-all")
"""Attacks of different families, for a quick look."""

_SYNONYMS = {"patch-expect": "patch-assertions"}
_COMPONENTS = (".svelte", ".tsx", ".vue")
_ENDINGS = {"python": ".py", "go": ".go", "rust": ".rs", "java": ".java", "cpp": ".cpp"}
_GO_STUB = re.compile(r"\) \(?([^(){\n]+)\)? \{\n\tpanic\(.*\)\n\}")
_JAVA_STUB = re.compile(r"(static (\S+) \w+\([^)]*\) \{)\s*throw [^;]*;")
_CPP_PARAMETER = re.compile(r"(?<=[ &*])\w+(?=,|$)")  # the compiler warns of unused parameters
_CPP_DECLARED = re.compile(r"^(\w[\w:<> ]*?) (\w+)\((.*)\);$", re.MULTILINE)
_INCLUDE = re.compile(r"^(?:#|//) include: (\S+)\n", re.MULTILINE)
_EXPORTED = re.compile(
    r"^export\s+(?:default\s+)?(?:abstract\s+|async\s+)?(?:const|let|function\*?|class|enum)\s+(\w+)", re.MULTILINE
)
_DEFAULT_EXPORT = re.compile(r"^export\s+default\b", re.MULTILINE)
_TEST_ID = re.compile(r"ByTestId\(\s*['\"]([\w-]+)")
_ROLE = re.compile(r"ByRole\(\s*['\"](\w+)['\"](?:,\s*\{\s*name:\s*['\"]([^'\"]+))?")
_NAME = re.compile(r"name:\s*['\"]([^'\"]+)|(?:button|field|item)\(['\"]([^'\"]+)['\"]\)")
_PASSING = {".py": "def test_everything():\n    assert True\n", ".ts": "test('everything', () => {})\n"}


@dataclass(frozen=True, slots=True)
class HostileSolution:
    """An attack by the solution itself, which runs in the same process as its tests."""

    name: str
    family: Family
    what: str
    """A sentence on what it does and which grader it would deceive."""
    suffix: str
    program: str
    """The path of the program below `bundled/attacks`."""
    build: Build
    rung: Rung = "process"
    """The weakest sandbox in which it must fail."""
    in_vitest: bool | None = None
    """True if it attacks Vitest and not Jest, False if Jest and not Vitest, None if its suffix decides."""

    def fits(self, case: GradedCase) -> bool:
        """Return True if the attack works in the language of a case."""
        runs_there = self.in_vitest in (None, case.settings.runner == "vitest")
        return runs_there and _suffix_of(case) == self.suffix

    def files(self, case: GradedCase) -> dict[str, str]:
        """Return the files of the hostile solution."""
        code = _read(self.program).strip().replace("{case}", case.name)
        return {name: self.build(code, case, name) for name in case.settings.solution if name.endswith(self.suffix)}

    def script(self, case: GradedCase) -> str:
        """Return a shell script that writes the files, as an agent would write them."""
        return "\n".join(_put_file(name, text) for name, text in self.files(case).items())


@dataclass(frozen=True, slots=True)
class HostileScript:
    """An attack on the workspace: files that test runners read, forged reports, processes left behind.

    A script uses only what an agent could find out too.
    """

    name: str
    what: str
    suffix: str | None = None
    """The suffix of the solutions that it can harm; None for every language."""
    family: Family = "files"
    rung: Rung = "process"

    def fits(self, case: GradedCase) -> bool:
        return self.suffix in (None, _suffix_of(case))

    def script(self, case: GradedCase) -> str:
        """Return the script for a case, made from a template in `bundled/attacks/workspace`."""
        from jinja2 import Environment, StrictUndefined

        solutions, tests = case.settings.solution, case.settings.tests
        shell = Environment(undefined=StrictUndefined)  # noqa: S701 - values are quoted for a shell, not for HTML
        return (
            shell.from_string(_read(f"workspace/{self.name}.sh.jinja"))
            .render(
                put=_put_file,
                quote=shlex.quote,
                json=json.dumps,
                solutions=list(solutions),
                solution=shlex.quote(solutions[0]),
                suffix=_suffix_of(case),
                beside=lambda name: str(PurePosixPath(solutions[0]).parent / name),
                test=shlex.quote(tests[0]),
                passing=[_put_file(name, _PASSING.get(PurePosixPath(name).suffix, "")) for name in tests],
            )
            .strip("\n")
        )


Attack: TypeAlias = HostileSolution | HostileScript


@cache
def all_attacks() -> tuple[Attack, ...]:
    """Return every attack. One name can stand for attacks in several languages."""
    table = tomllib.loads(_read("catalogue.toml"))
    scripts = [
        HostileScript(name, f"it {what}", table["only"].get(name)) for name, what in table["workspace"]["files"].items()
    ]

    def attacks(folders: str, suffix: str, build: Build, in_vitest: bool | None = None) -> Iterator[HostileSolution]:
        for folder in folders.split():
            rows = ((family, *row) for family, programs in table[folder].items() for row in programs.items())
            for family, name, what in rows:
                program = f"{folder}/{name}{_ENDINGS.get(folder, '.js')}"
                rung: Rung = "bwrap" if name in table["bwrap"] else "process"
                yield HostileSolution(name, family, f"its solution {what}", suffix, program, build, rung, in_vitest)

    return (
        *scripts,
        *attacks("python", ".py", _python_module),
        *attacks("jest modules javascript", ".ts", partial(_module, "jest"), in_vitest=False),
        *attacks("jest modules javascript", ".js", partial(_module, "jest"), in_vitest=False),
        *attacks("go", ".go", _go_file),
        *attacks("rust", ".rs", _rust_file),
        *attacks("java", ".java", _java_file),
        *attacks("cpp", ".cpp", _cpp_file),
        *(each for suffix in _COMPONENTS for each in attacks("vitest javascript", suffix, _component)),
        *attacks("vitest modules javascript", ".ts", partial(_module, "vitest"), in_vitest=True),
    )


@cache
def attack_names() -> tuple[str, ...]:
    """Return the names of all attacks, including synonyms."""
    return (*dict.fromkeys(attack.name for attack in all_attacks()), *_SYNONYMS)


def attack_on(case: GradedCase, name: str) -> Attack | None:
    """Return the attack of this name for a case; None if it does not exist in its language."""
    named = [attack for attack in all_attacks() if attack.name == _SYNONYMS.get(name, name)]
    return next((attack for attack in named if attack.fits(case) or isinstance(attack, HostileScript)), None)


def attacks_on(case: GradedCase) -> list[Attack]:
    """Return the attacks on the language of a case."""
    return [attack for attack in all_attacks() if attack.fits(case)]


def solution_in_turn(case: GradedCase) -> HostileSolution | None:
    """Return a hostile solution that depends only on the case; None for an unknown language."""
    fitting = [each for each in attacks_on(case) if isinstance(each, HostileSolution) and each.name not in SLOW]
    number = int(hashlib.sha256(case.name.encode()).hexdigest(), 16)
    return fitting[number % len(fitting)] if fitting else None


def attacks_in_turn(cases: Mapping[str, GradedCase]) -> dict[str, str]:
    """Return one fitting attack for each case. All attacks are used equally often."""
    used = dict.fromkeys(attack_names(), 0)
    chosen: dict[str, str] = {}
    for key, case in cases.items():
        fitting = [attack.name for attack in attacks_on(case) if attack.name not in SLOW]
        chosen[key] = min(fitting, key=used.__getitem__)
        used[chosen[key]] += 1
    return chosen


def _python_module(code: str, case: GradedCase, file: str) -> str:  # noqa: ARG001
    """Return the attack with a hollow module: every name that tests import calls `on_call`."""
    return f"{code.replace('{file}', file)}\n\n\n{_read('parts/hollow.py')}"


def _module(runner: str, code: str, case: GradedCase, file: str) -> str:
    """Return the attack in a module that exports dummy functions under the names of the stub's exports.

    `runner` selects the part for `jest` or `vitest`, which store their tests differently.
    """
    stub = case.files.get(file, "") or case.reference.get(file, "")
    typed = "" if file.endswith(".js") else ": any"
    exports = [f"export const {name}{typed} = hollow" for name in _EXPORTED.findall(stub)]
    exports += ["export default hollow"] if _DEFAULT_EXPORT.search(stub) else []
    built_in, about_runner, hollow = (_read(f"parts/{name}.js").strip() for name in ("built-in", runner, "hollow"))
    return "\n".join(["// @ts-nocheck", built_in, about_runner, code, hollow, *exports, ""])


def _go_file(code: str, case: GradedCase, file: str) -> str:
    """Return the stub with the attack. Its functions call `onCall` and return zero values."""
    package, _, rest = case.files[file].partition("\n")
    hollow = _GO_STUB.sub(
        lambda found: f") ({', '.join(f'_ {kind}' for kind in found[1].split(', '))}) {{\n\tonCall()\n\treturn\n}}",
        rest,
    )
    return f"{package}\n\n{code}\n{hollow}"


def _rust_file(code: str, case: GradedCase, file: str) -> str:
    """Return the attack and the stub. Its functions call `on_call` and return default values."""
    return f"{code}\n\n{case.files[file].replace('todo!()', '{ on_call(); Default::default() }')}"


def _java_file(code: str, case: GradedCase, file: str) -> str:
    """Return the stub and the attack. Its methods call `Attack.onCall` and return zero values."""
    zeros = {"int": "0", "boolean": "false"}
    stub = _JAVA_STUB.sub(
        lambda found: f"{found[1]} Attack.onCall(); return {zeros.get(found[2], 'null')};", case.files[file]
    )
    return f"{stub}\n{code}\n"


def _cpp_file(code: str, case: GradedCase, file: str) -> str:
    """Return the attack and the functions of the header, which call `on_call` first."""
    header = PurePosixPath(file).with_suffix(".h").name
    declared = case.files[header]
    space = re.findall(r"^namespace (\w+)", declared, re.MULTILINE)[0]
    functions = [
        f"{kind} {name}({_CPP_PARAMETER.sub('', given)}) {{ on_call(); return {{}}; }}"
        for kind, name, given in _CPP_DECLARED.findall(declared)
    ]
    return "\n".join([f'#include "{header}"', code, f"namespace {space} {{", *functions, "}", ""])


def _component(code: str, case: GradedCase, file: str) -> str:
    """Return a component with the roles, names and test ids that tests look for, and no logic."""
    module = "\n".join([_read("parts/built-in.js").strip(), _read("parts/vitest.js").strip(), code])
    template, tests = _read(f"parts/component{PurePosixPath(file).suffix}"), "\n".join(case.test_files.values())
    lines = [f'<output data-testid="{name}">0</output>' for name in dict.fromkeys(_TEST_ID.findall(tests))]
    names = dict.fromkeys(name for found in _NAME.findall(tests) for name in found if name)
    lines += [f'<button type="button" aria-label="{name}">{name}</button>' for name in names]
    roles = dict.fromkeys(role for role, _ in _ROLE.findall(tests) if role != "button")
    markup = "\n".join([*lines, *(f'<div role="{role}"></div>' for role in roles)])
    return template.replace("{markup}", markup).replace("{module}", module)


def _suffix_of(case: GradedCase) -> str:
    """Return the suffix of a case's solution files, which tells the language."""
    return PurePosixPath(case.settings.solution[0]).suffix


def _put_file(name: str, text: str = "", caller: Callable[[], str] | None = None) -> str:
    """Return a shell command that writes a file. In a template, `caller` can supply the text."""
    folder, text = str(PurePosixPath(name).parent), caller() if caller else text
    return f"mkdir -p {shlex.quote(folder)} && printf %s {shlex.quote(text)} > {shlex.quote(name)}"


@cache
def _read(path: str) -> str:
    """Return a file of `bundled/attacks` with its included parts."""
    text = files("bakeoff.bundled").joinpath("attacks", path).read_text("utf-8")
    ending = PurePosixPath(path).suffix
    return _INCLUDE.sub(lambda found: _read(f"parts/{found[1]}{ending}"), text)
