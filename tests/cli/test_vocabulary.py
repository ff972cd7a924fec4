"""One vocabulary for all commands: each has an example, and an option means the same wherever it is."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from bakeoff._kernel.environment import JOBS_RULE, default_jobs, usable_cores
from bakeoff.cli.declare import subcommands
from bakeoff.cli.main import app
from bakeoff.options import RunOptions

from ..warm_bakeoff import Bakeoff

ROOT: Any = typer.main.get_command(app)

DIFFERENT = {
    "--agent": "`agents image build` installs agents, `agents run` runs them",
    "--baseline": "`merge` compares with a file of pytest, `history` with a run",
    "--case": "cases are prompts, suites or exercises; those of `mcp evaluate` also have a number and tags",
    "--dry-run": "`agents image build` builds an image: it has no plan",
    "--exercise": "`audit` takes names, `agents run` also numbers",
    "--fail-on": "findings and changes have different levels",
    "--fail-under": "`merge` of pytest files has one mean of all evals",
    "--format": "`export` writes one, `import` reads one",
    "--gate": "`compare` has verdicts too, `merge` decides as pytest does, `history` has one rule",
    "--github": "`compare` has no trials to annotate: it writes the decision of the gate",
    "--jobs": "a configuration of `mcp evaluate` has a limit of its own",
    "--key": "signing takes the private key, verifying the public one",
    "--model": "the model is a subject, an agent's model, a selection, or an author",
    "--output": "commands that only write one thing write it there; the default is where it belongs",
    "--prompt": "prompts of `bakeoff eval` have names, those of `mcp evaluate` are cases",
    "--provider": "`models list` selects, `agents run` sets",
    "--require-calibrated-judge": "`compare` also corrects its scores; `merge` has no scores to correct",
    "--rounds": "an audit grades references several times, and configurations have their own number",
    "--sandbox": "`resume` keeps the sandbox of the run",
    "--scorer": "`rescore` takes any scorer, `label` and `judge audit` one of the run's judges",
    "--seed": "`run` seeds models, `audit` the choice of faults",
    "--subject": "`export` selects, `selfcheck` runs",
    "--suite": "`audit` also takes exercises",
    "--suites": "`suite new` writes into the folder, which need not have suites yet",
    "--threshold": "logs of other tools have scores and no verdicts",
    "--watch": "different files are watched",
    "--with": "models get texts, agents get files",
}
"""The options that differ between commands, each with the reason."""


def walk(command: Any = ROOT, path: tuple[str, ...] = ("bakeoff",)) -> Iterator[tuple[str, Any]]:
    yield " ".join(path), command
    for name, child in subcommands(command).items():
        yield from walk(child, (*path, name))


COMMANDS = dict(walk())
OPTIONS = [
    (path, option)
    for path, command in COMMANDS.items()
    for option in command.params
    if option.param_type_name == "option" and not option.hidden
]


def help_of(path: str, columns: int) -> str:
    """Return the help of a command as a terminal of so many columns shows it."""
    context = None
    command: Any = ROOT
    for word in path.split():
        command = command if context is None else subcommands(command)[word]
        context = command.context_class(
            command, info_name=word, parent=context, terminal_width=columns, max_content_width=columns
        )
    assert context is not None
    shown: str = command.get_help(context)
    return shown


@pytest.mark.parametrize("columns", [60, 80])
def test_no_help_is_cut_and_none_is_wider_than_the_terminal(columns: int) -> None:
    for path in COMMANDS:
        body, _, example = help_of(path, columns).partition("\n  Example:\n")
        assert "..." not in re.sub(r"\[ARGS\]\.\.\.|\[[A-Z=]+\]\.\.\.|\{[A-Z=]+\}\.\.\.", "", body), path
        assert max(map(len, body.splitlines())) <= columns, path
        assert example.strip(), path


def test_a_list_of_commands_shows_the_whole_first_sentence_of_each() -> None:
    for path, command in COMMANDS.items():
        listed = " ".join(help_of(path, 60).split())
        for name, child in subcommands(command).items():
            assert child.short_help in listed, child.name
            assert command.commands[name].short_help == child.short_help, "the table of commands is out of date"
            assert " ".join(child.help.split()).startswith(child.short_help), child.name
            assert child.short_help.endswith((".", "?")), child.name


def test_h_shows_the_same_help_as_help(capsys: pytest.CaptureFixture[str]) -> None:
    for path in COMMANDS:
        told = []
        for option in ("-h", "--help"):
            root: Any = typer.main.get_command(app)  # a new one: commands keep the help option that they showed first
            assert root([*path.split()[1:], option], prog_name="bakeoff", standalone_mode=False) == 0
            told.append(capsys.readouterr().out)
        assert told[0] == told[1]
        assert told[0].startswith(f"Usage: {path} ")
        assert re.search(r"^  -h, --help +Show this message and exit\.$", told[0], re.MULTILINE)


def test_the_example_of_a_command_is_one_that_it_understands() -> None:
    for path in COMMANDS:
        [example] = re.findall(r"\n  Example:\n    (.+)$", help_of(path, 80))
        words = shlex.split(example.partition(" > ")[0])
        assert example.startswith(path), "the example is of this command"
        context = ROOT.make_context("bakeoff", words[1:], resilient_parsing=False)
        while hasattr(context.command, "commands"):
            rest = [*context._protected_args, *context.args]
            name, command, rest = context.command.resolve_command(context, rest)
            context = command.make_context(name, rest, parent=context)


def test_a_long_help_shows_the_options_of_first_use_on_one_screen() -> None:
    listed = help_of("bakeoff", 80)
    titles = [listed.index(f"\n{title}:\n") for title in ("Run", "Look at results", "Compare and decide")]
    assert titles == sorted(titles)
    for path in ("eval", "run", "agents run", "mcp evaluate", "compare"):
        first, _, others = help_of(f"bakeoff {path}", 80).partition("\nAdvanced:\n")
        assert others
        assert len(first.splitlines()) <= 50, path
        assert 10 <= len(re.findall(r"^  -", first, re.MULTILINE)) <= 15, path
    for path in ("run", "agents run", "agents verify", "audit", "verify"):
        assert "--case" in help_of(f"bakeoff {path}", 80), path


def test_help_begins_with_a_verb_and_ends_with_a_full_stop() -> None:
    for path, command in COMMANDS.items():
        for paragraph in command.help.split("\n\n"):
            assert paragraph.endswith("."), paragraph
        assert re.match(r"[A-Z][a-z]+,? ", command.help), command.help
        assert not re.match(r"[A-Z][a-z]+s ", command.help), "it is an imperative"
        for parameter in command.params:
            if not getattr(parameter, "hidden", False):
                assert parameter.help, f"{path} {parameter.name} has no help"
                assert parameter.help.endswith("."), parameter.help
                assert parameter.help[0].isupper(), parameter.help
            if parameter.param_type_name == "argument":
                assert parameter.metavar, f"{path} {parameter.name}: name what to write, in capitals"
                assert re.fullmatch(r"[A-Z=]+", parameter.metavar), parameter.metavar


def test_an_option_has_one_meaning_one_default_and_one_kind_of_value() -> None:
    found: dict[str, set[tuple[object, ...]]] = {}
    for _, option in OPTIONS:
        for name in (*option.opts, *option.secondary_opts):
            meaning = option.help, option.metavar, str(option.default), option.is_flag
            found.setdefault(name, set()).add(meaning)
    several = {name for name, meanings in found.items() if len(meanings) > 1 and name.startswith("--")}
    assert several - DIFFERENT.keys() == set(), "give them one meaning, or say why they differ"
    assert DIFFERENT.keys() - several == set(), "these no longer differ"


def test_json_and_markdown_are_flags_and_files_have_names_of_their_own() -> None:
    for path, option in OPTIONS:
        if {"--json", "--markdown"} & {*option.opts}:
            assert option.is_flag, path
        if {"--output", "--junit", "--html", "--sarif"} & {*option.opts}:
            assert option.metavar in ("FILE", "DIR", "PATH"), path


def test_a_limit_of_one_answer_and_a_budget_have_different_names() -> None:
    for path, option in OPTIONS:
        if "--max-tokens" in option.opts:
            assert "one" in option.help or "reply" in option.help, path
        if "--max-cost" in option.opts and path != "bakeoff selfcheck":
            assert any("--max-total-tokens" in other.opts for at, other in OPTIONS if at == path), path


def test_jobs_follow_one_rule_that_the_help_states() -> None:
    assert default_jobs() == min(8, 2 * usable_cores()) == RunOptions().jobs
    for path, option in OPTIONS:
        if "--jobs" in option.opts:
            assert option.default is None, path
            assert JOBS_RULE in option.help or path == "bakeoff mcp evaluate", path


def test_jobs_count_only_the_cores_that_the_process_may_use(bakeoff: Bakeoff) -> None:
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system cannot confine a process to some of its cores")
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert default_jobs() == 2
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize("form", [("--markdown", "out.md"), ("--markdown=out.md",)])
def test_the_old_form_of_markdown_is_refused_with_the_way_out(bakeoff: Bakeoff, form: tuple[str, ...]) -> None:
    done = bakeoff("run", "--model", "nop", *form)
    assert done.returncode == 2
    assert "write `--markdown -o out.md`" in done.stderr
    assert not Path("out.md").exists()


def test_a_budget_by_its_old_name_is_refused_with_the_new_one(bakeoff: Bakeoff) -> None:
    done = bakeoff("resume", "--max-tokens", "5")
    assert done.returncode == 2
    assert "--max-total-tokens" in done.stderr


def test_output_needs_something_to_write_and_a_place_that_can_be_written(bakeoff: Bakeoff, tmp_path: Path) -> None:
    alone = bakeoff("power", "-o", "x.json")
    assert alone.returncode == 2
    assert "add --json or --markdown" in alone.stderr
    folder = bakeoff("power", "--json", "-o", str(tmp_path))
    assert folder.returncode == 2
    assert "is a folder: name a file" in folder.stderr
    both = bakeoff("power", "--json", "-o", "power.json")
    assert both.returncode == 0
    assert "Finds" in both.stdout
    assert (tmp_path / "power.json").read_text().startswith("{")
