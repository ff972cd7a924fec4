"""Run solutions with plain tools as a person would: in a folder, with nothing of Bakeoff around the tests."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree as ET

from bakeoff._kernel.environment import cache_folder
from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.model import fingerprint
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.commands import tools_of
from bakeoff.toolchains.tracks import CPP, JAVA, TRACKS, is_outside_tests

from .corpus import Solution

States: TypeAlias = dict[str, str]  # of each test by its name; empty where none ran
SECONDS = 60.0
_BATCH = 8
_UNSKIPPING = threading.Lock()  # `ast.parse` of Python 3.11 may fail in two threads at once
_AT_ONCE = 2
_BABEL = {"presets": [["@babel/preset-env", {"targets": {"node": "current"}}], "@babel/preset-typescript"]}
_VITEST = """
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { svelteTesting } from '@testing-library/svelte/vite';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte({ compilerOptions: { runes: true } }), svelteTesting()],
  test: { globals: true, environment: 'jsdom', setupFiles: ['./setup.ts'], include: ['*/test.ts', '*/test.svelte.ts'] },
});
"""


def run_plain(solutions: Sequence[Solution], toolchains: dict[str, Path]) -> dict[str, States]:
    """Return what the plain tools say about each solution. Those of Jest and Vitest share a process in batches.

    What was once found is kept in the cache folder: the plain tools do not change with Bakeoff. Where no test ran, the
    machine may have been too busy, so that is not kept.
    """
    kept = cache_folder() / "plain-tools.json"
    known: dict[str, States] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    keys = {str(each): _key(each) for each in solutions}
    missing = [each for each in solutions if keys[str(each)] not in known]
    batches = [[each] for each in missing if each.case.settings.runner in ("pytest", "command")]
    for runner in ("jest", "vitest"):
        chosen = [each for each in missing if each.case.settings.runner == runner]
        batches += [chosen[start : start + _BATCH] for start in range(0, len(chosen), _BATCH)]

    def run(batch: list[Solution]) -> None:
        runner = batch[0].case.settings.runner
        alone = {"pytest": _pytest, "command": _command}
        found = [alone[runner](batch[0])] if runner in alone else _node(runner, toolchains[runner], batch)
        known.update({keys[str(each)]: states for each, states in zip(batch, found, strict=True)})

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(run, batches))
    write_atomically(kept, json.dumps({key: states for key, states in known.items() if states}).encode())
    return {str(each): known[keys[str(each)]] for each in solutions}


def _key(solution: Solution) -> str:
    return fingerprint(solution.case.with_answer(solution.files), solution.case.settings.tests)


def _write(folder: Path, solution: Solution) -> None:
    case = solution.case
    for name, text in case.with_answer(solution.files).items():
        if is_outside_tests(name) or name == "package.json":
            continue
        track = TRACKS.get(case.settings.track)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with _UNSKIPPING:
            unskipped = track.unskip(text) if track and name in case.settings.tests else text
        path.write_text(unskipped, encoding="utf-8")


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-plain-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _pytest(solution: Solution) -> States:
    with _folder() as folder:
        _write(folder, solution)
        track = TRACKS["python"]
        tests = track.tests_among(solution.case.settings.tests, solution.case.files)
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=out.xml", *tests]
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(argv, cwd=folder, env=env, capture_output=True, check=False, timeout=SECONDS)
        if not (folder / "out.xml").exists():
            return {}
        states: States = {}
        for case in ET.parse(folder / "out.xml").iter("testcase"):
            classes = case.get("classname", "").split(".")[1:]
            bad = [each.tag for each in case if each.tag in ("failure", "error", "skipped")]
            name = " > ".join([*classes, case.get("name", "")])
            if case.get("classname"):
                states[name] = ("skipped" if bad == ["skipped"] else "failed") if bad else states.get(name, "passed")
        return states


# As a person would type them, and so that they tell of each test.
_COMMANDS = {
    "go": "go test -v ./...",
    "rust": "cargo test --offline --tests -- --include-ignored --test-threads=1",
    "java": f"{JAVA.command} --reports-dir=out",
    "cpp": f"{CPP.command} --reporter junit --out out.xml",
}


def _command(solution: Solution) -> States:
    """Run the command of a compiled language, in a folder of its own."""
    track = solution.case.settings.track
    with _folder() as folder:
        _write(folder, solution)
        env = {**os.environ, **tools_of(TRACKS[track], choose_sandbox("process")).env, "HOME": str(folder)}
        with suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                ["sh", "-c", _COMMANDS[track]],
                cwd=folder,
                env=env,
                capture_output=True,
                check=False,
                timeout=4 * SECONDS,
            )
        if track == "go":
            found = re.findall(r"--- (PASS|FAIL): (Test\S+)", done.stdout.decode())
            names = {name for _, name in found}
            return {
                name: "passed" if word == "PASS" else "failed"
                for word, name in found
                if not any(other.startswith(f"{name}/") for other in names)
            }
        if track == "rust":
            listed = re.findall(r"^failures:\n((?:    \S+\n)+)", done.stdout.decode(), re.MULTILINE)
            failed = set(listed[-1].split()) if listed else set()
            ran = re.findall(r"^test (\S+)(?: - should panic)? \.\.\. ", done.stdout.decode(), re.MULTILINE)
            return {name: "failed" if name in failed else "passed" for name in ran}
        report = folder / ("out/TEST-junit-jupiter.xml" if track == "java" else "out.xml")
        if not report.exists():
            return {}
        return {
            f"{each.get('classname')} > {each.get('name')}" if track == "java" else each.get("name", ""): (
                "passed" if each.find("failure") is None and each.find("error") is None else "failed"
            )
            for each in ET.parse(report).iter("testcase")
        }


def _node(runner: str, toolchain: Path, batch: Sequence[Solution]) -> list[States]:
    with _folder() as folder:
        for number, solution in enumerate(batch):
            _write(folder / f"s{number}", solution)
        packages = folder / "node_modules"
        packages.mkdir()
        for package in (toolchain / "node_modules").iterdir():
            (packages / package.name).symlink_to(package)
        if runner == "jest":
            (folder / "package.json").write_text("{}", encoding="utf-8")
            (folder / "babel.config.json").write_text(json.dumps(_BABEL), encoding="utf-8")
            argv = ["node", "node_modules/jest/bin/jest.js", "--ci", "--json", "--outputFile=out.json", "--forceExit"]
        else:
            (folder / "vitest.config.mjs").write_text(_VITEST, encoding="utf-8")
            (folder / "setup.ts").write_text("import '@testing-library/jest-dom/vitest';\n", encoding="utf-8")
            argv = ["node", "node_modules/vitest/vitest.mjs", "run", "--reporter=json", "--outputFile=out.json"]
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "NO_COLOR": "1"}
        try:
            limit = SECONDS if len(batch) == 1 else SECONDS + 20 * len(batch)
            subprocess.run(argv, cwd=folder, env=env, capture_output=True, check=False, timeout=limit)
        except subprocess.TimeoutExpired:
            return [{}] if len(batch) == 1 else [found for each in batch for found in _node(runner, toolchain, [each])]
        report = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    found: list[States] = [{} for _ in batch]
    for module in report["testResults"]:
        number = int(Path(module["name"]).relative_to(folder.resolve()).parts[0][1:])
        for test in module["assertionResults"]:
            found[number][" > ".join([*test["ancestorTitles"], test["title"]])] = test["status"]
    return found
