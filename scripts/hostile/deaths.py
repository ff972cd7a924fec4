"""Ways to die: wrong answers that end their tests so that it may look like a fault of the grader.

None of them may be lost: each is a failure of the answer, whatever its exit code, signal, output or report.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from scripts.hostile.options import Options
from scripts.hostile.rows import Findings, Outcome, Row

from bakeoff.doors.agents.exercises import bundled_folder
from bakeoff.errors import BakeoffError
from bakeoff.protocols import Resource, Sandbox
from bakeoff.sandbox import available, choose_sandbox
from bakeoff.toolchains.command_reports import JunitToolchain
from bakeoff.toolchains.exercises import ExerciseToolchain
from bakeoff.toolchains.outcome import Grader, TestRun, answered
from bakeoff.toolchains.pytest_runner import PytestToolchain
from bakeoff.toolchains.tracks import TRACKS, missing_programs
from bakeoff.toolchains.vitest import VitestToolchain

SECONDS = 20.0
REPORT = "report.xml"
CODES = (0, 1, 2, 3, 77, 125, 126, 127, 128, 130, 134, 137, 139, 143, 255)
SIGNALS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 31)
FEW_CODES, FEW_SIGNALS = (0, 1, 101, 125, 126, 127, 137, 255), (6, 8, 9, 11, 15)  # compiling takes long
SURROGATE = "\ud800"

_FLOOD = '"<testsuite>" + "<testcase name=\\"a\\"/>" * {} + "</testsuite>"'
REPORTS = {  # what is left where the report should be; each is an expression of Python
    "an empty report": '""',
    "a report that is cut off": '"<testsuite><testcase name=\\"a\\""',
    "a report without tests": '"<testsuite/>"',
    "a report of something else": '"{\\"tests\\": 3}"',
    "a report with a flood of tests": _FLOOD.format(600_000),
    "a report with many tests": _FLOOD.format(30_000),
    "a report that is too large": '"<testsuite>" + " " * (20 << 20) + "</testsuite>"',
    "a report that is nested deeply": '"<a>" * 50000 + "</a>" * 50000',
    "a report that never ends its nesting": '"<a>" * 3_000_000',
    "a report with entities": '"<!DOCTYPE a [<!ENTITY b \\"c\\">]><a>&b;</a>"',
    "a report with a NUL": '"<testsuite><testcase name=\\"\\0\\"/></testsuite>"',
    "a report in bytes": 'b"\\xff\\xfe<\\0t\\0"',
    "a report with odd times": '"<testsuite><testcase name=\\"a\\" time=\\"nan\\"><failure/></testcase></testsuite>"',
    "a report with tests twice": '"<testsuite>" + "<testcase name=\\"a\\"><error/></testcase>" * 2 + "</testsuite>"',
}
_AT_ONCE = {
    "null pointer": "import ctypes; ctypes.string_at(0)",
    "endless recursion": "def f(): f()\nf()",
    "deep recursion of the machine": "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
    "abort": "os.abort()",
    "another program": "os.execv('/bin/sh', ['sh', '-c', 'exit 127'])",
    "a missing program": "os.execv('/no/such/program', ['no'])",
    "exit in a thread": "import threading; threading.Thread(target=lambda: os._exit(127)).start()",
    "exit at the end": "import atexit; atexit.register(os._exit, 127)",
    "SystemExit": "raise SystemExit(127)",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "GeneratorExit": "raise GeneratorExit",
    "BaseException": "raise BaseException('x')",
    "an error that cannot be printed": "class E(Exception):\n    def __str__(self): os._exit(126)\nraise E",
    "an error with a long text": "raise ValueError('x' * (8 << 20))",
    "an error that is no text": "raise ValueError('\\ud800\\x00\\x1b[2J')",
    "MemoryError": "raise MemoryError",
    "too much memory": "kept = [bytearray(b'x') * (64 << 20) for _ in range(200)]",
    "a flood of output": "while True: os.write(1, b'x' * 65536)",
    "a flood of errors": "while True: os.write(2, b'x' * 65536)",
    "words of a shell": "os.write(2, b'sh: 1: pytest: not found\\n'); os._exit(127)",
    "words of bubblewrap": "os.write(2, b'bwrap: execvp python3: No such file or directory\\n'); os._exit(1)",
    "words of docker": "os.write(2, b'docker: Error response from daemon: no such image\\n'); os._exit(125)",
    "closed descriptors": "os.closerange(0, 1 << 10)",
    "its folder is gone": "import shutil; shutil.rmtree(os.getcwd()); os._exit(127)",
    "its folder is closed": "os.chmod('.', 0); os._exit(127)",
    "a folder in place of the report": f"os.mkdir('{REPORT}'); os._exit(0)",
    "a FIFO in place of the report": f"os.mkfifo('{REPORT}'); os._exit(0)",
    "a link in place of the report": f"os.symlink('/etc/passwd', '{REPORT}'); os._exit(0)",
    "an endless device in place of the report": f"os.symlink('/dev/zero', '{REPORT}'); os._exit(0)",
    "a link to itself in place of the report": f"os.symlink('{REPORT}', '{REPORT}'); os._exit(0)",
    "no room for files": "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
    "no descriptors": "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))",
    "it kills its parent": "os.kill(os.getppid(), 9); os._exit(127)",
    "it kills everybody": "os.kill(-1, 9)",
    "it breaks the first process": "open('/proc/1/mem', 'r+b').write(b'x')",
    "many files": "[open(f'f{n}', 'w').close() for n in range(3000)]; os._exit(127)",
    "deep folders": "for _ in range(500): os.mkdir('d'); os.chdir('d')\nos._exit(127)",
    "files with odd names": "open(b'\\xff\\n', 'w').close(); os._exit(127)",
}
PYTHON = {
    **{f"exit code {code}": f"os._exit({code})" for code in CODES},
    **{f"signal {number}": f"os.kill(os.getpid(), {number})" for number in SIGNALS},
    **_AT_ONCE,
    **{
        name: f"open('{REPORT}', 'wb').write(x.encode() if isinstance(x := {text}, str) else x); os._exit(0)"
        for name, text in REPORTS.items()
    },
}
"""The ways in Python, by what they do when the answer is imported."""

_NODE = {
    "abort": "process.abort()",
    "endless recursion": "function f() { f(); } f();",
    "too much memory": "const kept = []; for (;;) kept.push(new Array(1e6).fill(kept.length));",
    "a large buffer": "new ArrayBuffer(2 ** 40)",
    "an error that is no error": "throw undefined",
    "an error that cannot be printed": "throw { get message() { process.exit(126); } }",
    "an error with a long text": "throw new Error('x'.repeat(1 << 24))",
    "an error that is no text": "throw new Error('\\ud800\\u0000')",
    "a lost rejection": "Promise.reject(new Error('lost'))",
    "an error later": "setTimeout(() => { throw new Error('later'); }, 1)",
    "an exit code for later": "process.exitCode = 127; throw new Error('x')",
    "a flood of output": "for (;;) process.stdout.write('x'.repeat(65536))",
    "a flood of errors": "for (let n = 0; n < 1e5; n++) console.error('x'.repeat(65536))",
    "words of a shell": "console.error('sh: 1: node: not found'); process.exit(127)",
    "a frozen world": "Object.freeze(Object.prototype); Object.freeze(Array.prototype); throw 1",
    "no JSON": "JSON.stringify = () => { throw 1; }; throw 1",
    "a binding of the machine": "process.binding('fs'); process.reallyExit(127)",
}
NODE = {
    **{f"exit code {code}": f"process.exit({code})" for code in CODES},
    **{f"exit at once {code}": f"process.reallyExit({code})" for code in CODES[-8:]},
    **{f"signal {number}": f"process.kill(process.pid, {number})" for number in SIGNALS},
    **_NODE,
}


def _as_python(code: str) -> dict[str, str]:
    """Return further ways for a language. `code` turns the program into the one of /usr/bin/python3 with that text."""
    return {f"as Python: {name}": code % json.dumps(f"import os\n{way}") for name, way in _AT_ONCE.items()}


GO = {
    **_as_python('syscall.Exec("/usr/bin/python3", []string{"python3", "-c", %s}, os.Environ())'),
    **{f"exit code {code}": f"os.Exit({code})" for code in CODES},
    **{f"signal {number}": f"syscall.Kill(syscall.Getpid(), {number})" for number in SIGNALS},
    "panic": 'panic("x")',
    "null pointer": "var p *int; *p = 1",
    "words of a shell": 'os.Stderr.WriteString("sh: 1: go: not found\\n"); os.Exit(127)',
}
RUST = {
    **_as_python(
        'std::os::unix::process::CommandExt::exec(std::process::Command::new("/usr/bin/python3").arg("-c").arg(%s))'
    ),
    **{f"exit code {code}": f"std::process::exit({code})" for code in FEW_CODES},
    **{f"signal {number}": f"unsafe {{ raise({number}); }}" for number in FEW_SIGNALS},
    "panic": 'panic!("x")',
    "a panic that is no text": "std::panic::panic_any(1u8)",
    "null pointer": "unsafe { std::ptr::null_mut::<i32>().write_volatile(1) }",
    "endless recursion": "fn f(n: u64) -> u64 { std::hint::black_box(f(n + 1)) + 1 } f(a as u64)",
    "a flood of output": "loop { use std::io::Write; std::io::stdout().write_all(&[120; 65536]).ok(); }",
    "words of a shell": 'eprintln!("sh: 1: cargo: not found"); std::process::exit(127)',
}
CPP = {
    **_as_python('execl("/usr/bin/python3", "python3", "-c", %s, static_cast<char*>(nullptr))'),
    **{f"exit code {code}": f"std::_Exit({code})" for code in FEW_CODES},
    **{f"signal {number}": f"raise({number})" for number in FEW_SIGNALS},
    "an error that is no error": "throw 1",
    "terminate": "std::terminate()",
    "null pointer": "*static_cast<volatile int*>(nullptr) = a",
    "endless recursion": "add(a + 1, b) + add(a, b + 1)",
    "a flood of output": "for (;;) std::cout << std::string(65536, 'x')",
    "words of a shell": 'std::cerr << "sh: 1: g++: not found\\n"; std::_Exit(127)',
}
JAVA = {
    **_as_python(
        'try { System.exit(new ProcessBuilder("/usr/bin/python3", "-c", %s).inheritIO().start().waitFor()); }'
        " catch (Exception e) { Runtime.getRuntime().halt(127); }"
    ),
    **{f"exit code {code}": f"Runtime.getRuntime().halt({code})" for code in CODES},
    "exit by System": "System.exit(127)",
    "an error": 'if (a > 0) throw new Error("x")',
    "too much memory": "long[][] kept = new long[9999][]; for (int n = 0; n < 9999; n++) kept[n] = new long[1 << 24]",
    "endless recursion": "add(a + 1, b)",
    "words of a shell": 'System.err.println("sh: 1: java: not found"); Runtime.getRuntime().halt(127)',
}


@dataclass(frozen=True, slots=True)
class DyingGrader:
    """A grader with the files of a small suite, and the ways in which its answers die."""

    toolchain: Callable[[Callable[[], Sandbox]], Resource]
    tests: Mapping[str, str]
    ways: Mapping[str, str]
    answer: Callable[[str], Mapping[str, str]]


_TEST = "from solution import add\n\ndef test_a():\n    assert add(1, 2) == 3\n"
_CHECK = f"""
from solution import add
fault = "" if add(1, 2) == 3 else "<failure/>"
open("{REPORT}", "w").write(f"<testsuite><testcase name='a'>{{fault}}</testcase></testsuite>")
"""
_JEST_TEST = "import { add } from './add';\ntest('adds', () => { expect(add(1, 2)).toBe(3); });\n"
_VITEST = "import { expect, test } from 'vitest';\nimport { add } from './solution';\n"
_VITEST += "test('adds', () => { expect(add(1, 2)).toBe(3); });\n"
_GO_TEST = (
    'package add\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n'
)
_RUST_TEST = "use add::add;\n\n#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n"
_RUST_ANSWER = 'extern "C" { fn raise(n: i32) -> i32; }\n\n#[allow(unused, unreachable_code)]\n'
_CPP_TEST = '#include "add.h"\n#include "test/catch.hpp"\n\nTEST_CASE("adds") { REQUIRE(add(1, 2) == 3); }\n'
_CPP_WARNINGS = ("infinite-recursion", "unused-value", "unused-parameter", "unknown-pragmas", "pragmas")
_CPP_ANSWER = "".join(f'#pragma GCC diagnostic ignored "-W{name}"\n' for name in reversed(_CPP_WARNINGS))
_CPP_ANSWER += "#include <csignal>\n#include <cstdlib>\n#include <exception>\n#include <iostream>\n#include <string>\n"
_CPP_ANSWER += "#include <unistd.h>\n"
_CATCH = bundled_folder().parent / "polyglot/cpp/exercises/practice/parking-fee/test"
_JAVA_TEST = """import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

public class AddTest {
    @Test
    public void adds() { assertEquals(3, Add.add(1, 2)); }
}
"""
_GO_ANSWER = 'package add\n\nimport ("os"; "syscall")\n\nvar _ = os.Exit\nvar _ = syscall.Kill\n\n'


def _python(way: str) -> dict[str, str]:
    return {"solution.py": f"import os\n{way}\n\ndef add(a, b):\n    return 0\n"}


def _typescript(name: str) -> Callable[[str], dict[str, str]]:
    return lambda way: {name: f"// @ts-nocheck\n{way};\nexport function add(a, b) {{ return 0; }}\n"}


def _by_command(track: str) -> Callable[[Callable[[], Sandbox]], Resource]:
    return lambda sandbox: ExerciseToolchain(sandbox, TRACKS[track], command=TRACKS[track].command)


def _junit(sandbox: Callable[[], Sandbox]) -> Resource:
    return JunitToolchain(sandbox, ("python3", "check.py"), REPORT)


GRADERS = {
    "pytest": DyingGrader(PytestToolchain, {"test_solution.py": _TEST}, PYTHON, _python),
    "junit": DyingGrader(_junit, {"check.py": _CHECK}, PYTHON, _python),
    "command": DyingGrader(
        lambda sandbox: ExerciseToolchain(sandbox, TRACKS["python"], command="python3 -m pytest"),
        {"test_solution.py": _TEST},
        PYTHON,
        _python,
    ),
    "jest": DyingGrader(ExerciseToolchain, {"add.test.ts": _JEST_TEST}, NODE, _typescript("add.ts")),
    "whole jest": DyingGrader(
        ExerciseToolchain,
        {"add.test.ts": f"{_JEST_TEST}jest.mock('./nothing', () => ({{}}), {{ virtual: true }});\n"},
        NODE,
        _typescript("add.ts"),
    ),
    "vitest": DyingGrader(
        lambda sandbox: VitestToolchain(sandbox, framework="typescript"),
        {"test.ts": _VITEST},
        NODE,
        _typescript("solution.ts"),
    ),
    "whole vitest": DyingGrader(
        lambda sandbox: VitestToolchain(sandbox, framework="typescript"),
        {"test.ts": f"{_VITEST}vi.mock('./nothing', () => ({{}}));\n".replace("{ expect,", "{ expect, vi,")},
        NODE,
        _typescript("solution.ts"),
    ),
    "go": DyingGrader(
        _by_command("go"),
        {"add_test.go": _GO_TEST, "go.mod": "module add\n\ngo 1.18\n"},
        GO,
        lambda way: {"add.go": f"{_GO_ANSWER}func Add(a, b int) int {{\n\t{way}\n\treturn 0\n}}\n"},
    ),
    "rust": DyingGrader(
        _by_command("rust"),
        {"tests/add.rs": _RUST_TEST, "Cargo.toml": '[package]\nname = "add"\nversion = "0.1.0"\nedition = "2021"\n'},
        RUST,
        lambda way: {"src/lib.rs": f"{_RUST_ANSWER}pub fn add(a: i32, b: i32) -> i32 {{\n    {way};\n    0\n}}\n"},
    ),
    "cpp": DyingGrader(
        _by_command("cpp"),
        {"add_test.cpp": _CPP_TEST, **{f"test/{file.name}": file.read_text() for file in _CATCH.iterdir()}},
        CPP,
        lambda way: {"add.h": f"{_CPP_ANSWER}inline int add(int a, int b) {{\n    {way};\n    return 0;\n}}\n"},
    ),
    "java": DyingGrader(
        _by_command("java"),
        {"src/test/java/AddTest.java": _JAVA_TEST},
        JAVA,
        lambda way: {
            "src/main/java/Add.java": f"class Add {{\n    static int add(int a, int b) {{ {way}; return 0; }}\n}}\n"
        },
    ),
    "javascript": DyingGrader(
        lambda sandbox: ExerciseToolchain(sandbox, TRACKS["javascript"]),
        {"add.test.js": _JEST_TEST},
        NODE,
        _typescript("add.js"),
    ),
}
INSTALLED = [name for name in GRADERS if name not in TRACKS or not missing_programs(TRACKS[name])]
"""The graders whose programs are here."""
CLAIMING = "command"  # it believes the exit code, and our own runner confirms it
SOURCES = {"a lone surrogate": f"'{SURROGATE}'", "a NUL": "\0", "nonsense": "((((", "a byte order mark": "\ufeff x"}
"""Answers that cannot even be read, for every grader."""


@asynccontextmanager
async def opened(name: str, sandbox: Sandbox) -> AsyncIterator[Callable[[str], Any]]:
    """Open a grader, and yield what grades an answer that dies in one of its ways. It returns the run."""
    grader = GRADERS[name]
    async with AsyncExitStack() as stack:
        runner: Grader = await stack.enter_async_context(grader.toolchain(lambda: sandbox).open())

        async def grade(way: str) -> TestRun:
            code = grader.ways[way] if way in grader.ways else SOURCES[way]
            tests = [file for file in grader.tests if "test" in file]
            return await answered(runner.run({**grader.tests, **grader.answer(code)}, tests=tests, seconds=SECONDS))

        yield grade


async def excuses(name: str, sandbox: Sandbox, ways: list[str]) -> dict[str, str]:
    """Return the ways that a grader excuses or lets pass, and what it says."""
    found: dict[str, str] = {}
    async with opened(name, sandbox) as grade:
        free = asyncio.Semaphore(2)

        async def one(way: str) -> None:
            async with free:
                try:
                    run = await grade(way)
                except (BakeoffError, OSError, ArithmeticError, LookupError, TypeError, RuntimeError) as problem:
                    found[way] = f"{type(problem).__name__}: {problem}"
                    return
                if run.ok and name != CLAIMING:
                    found[way] = f"passed: {json.dumps([test.name for test in run.tests])[:200]}"

        await asyncio.gather(*map(one, ways))
    return found


def run(options: Options) -> Findings:
    """Let answers die in all ways, and return a row for each grader."""
    return asyncio.run(_run(options))


async def _run(options: Options) -> Findings:
    rows: list[Row] = []
    failures: list[str] = []
    tried = 0
    usable = {status.name for status in available() if status.ok}
    rungs = options.rungs or (("bwrap",) if options.sample else ("process", "bwrap", "docker"))
    for rung in [rung for rung in rungs if rung in usable]:
        chosen = ["junit"] if rung == "docker" else ["pytest", "junit"] if options.sample else INSTALLED
        for name in chosen:  # the image of docker has neither pytest nor Node
            started, ways = time.monotonic(), [*GRADERS[name].ways, *SOURCES][:: 4 if options.sample else 1]
            found = await excuses(name, choose_sandbox(rung), ways)
            tried += len(ways)
            failures += [f"{name} on {rung}: {way}: {said}" for way, said in found.items()]
            outcome: Outcome = "possible" if found else "prevented"
            rows.append(Row("deaths", "die-excused", rung, options.user, outcome, f"{name}: {len(ways)} ways"))
            options.say(
                f"  {rung:8} {name:13} {len(ways)} ways, {len(found)} excused, {time.monotonic() - started:.0f} s"
            )
    return Findings(rows, {"ways-to-die": float(tried), "excused-deaths": float(len(failures))}, failures)
