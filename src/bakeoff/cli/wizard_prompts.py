"""The kinds of question there are, by questionary, with one way out of each: Ctrl-C, Ctrl-D and Esc are all
`KeyboardInterrupt`, raised when the terminal is as it was before."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import questionary
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings
from prompt_toolkit.keys import Keys
from questionary.prompts.common import InquirerControl
from questionary.question import Question
from rich.text import Text

from bakeoff.cli.console import out
from bakeoff.errors import UsageError

_MARK = "?"
_POINTER = "›"
_STYLE = questionary.Style(
    [
        ("qmark", "fg:ansicyan bold"),
        ("answer", "fg:ansicyan nobold"),
        ("pointer", "fg:ansicyan bold"),
        ("highlighted", "fg:ansicyan"),
        ("selected", "fg:ansigreen"),
        ("instruction", "italic"),
    ]
)
_ESCAPE_SECONDS = 0.1  # the keys that begin with Esc, such as the arrows, arrive as a whole
_PAGE = 10


@dataclass(frozen=True, slots=True)
class Option:
    """One answer of several: what it is, and what is shown for it."""

    value: str
    title: str


def pick(message: str, options: Sequence[Option], default: str | None = None, *, trace: bool = True) -> str:
    """One of the options; `default` is where the pointer stands at first. Without `trace` nothing of it stays."""
    question = questionary.select(
        message,
        [questionary.Choice(option.title, option.value) for option in options],
        default=default if default in [option.value for option in options] else None,
        qmark=_MARK,
        pointer=_POINTER,
        style=_STYLE,
        instruction="(arrows, enter)",
        erase_when_done=not trace,
    )
    return str(_ask(question))


def tick(message: str, options: Sequence[Option], ticked: Collection[str]) -> list[str]:
    """Any number of the options but none of them, found by typing a part of what is shown."""

    def how_many() -> str:
        count = len(_control(question).selected_options)
        return f"{count} ticked" if count else ""  # most of what is ticked is out of sight while searching

    question = questionary.checkbox(
        message,
        [questionary.Choice(option.title, option.value, checked=option.value in ticked) for option in options],
        validate=lambda chosen: True if chosen else "tick at least one: space ticks what the pointer is at",
        qmark=_MARK,
        pointer=_POINTER,
        style=_STYLE,
        use_jk_keys=False,
        use_search_filter=True,
        instruction="(type to search, space ticks, enter)",
        rprompt=how_many,
        erase_when_done=True,  # it would say how many were chosen, and not which
    )
    chosen: list[str] = _ask(question, _long_list_keys(_control(question)))
    return chosen


def type_in(message: str, default: str, check: Callable[[str], str | None], instruction: str | None = None) -> str:
    """A line of text; `check` says what is wrong with it."""
    question = questionary.text(
        message,
        default=default,
        validate=lambda text: check(text.strip()) or True,
        qmark=_MARK,
        style=_STYLE,
        instruction=instruction,
        validate_while_typing=False,
    )
    return str(_ask(question)).strip()


def agree(message: str, *, default: bool) -> bool:
    return bool(_ask(questionary.confirm(message, default=default, qmark=_MARK, style=_STYLE, auto_enter=False)))


def advice(error: UsageError) -> str:
    """The way out that an error names at its end: there is one line for it, and what is wrong is in sight."""
    from bakeoff.report.words import visible  # what comes along takes half a second to load

    return visible(str(error).rpartition(": ")[2])


def show_answer(message: str, answer: str) -> None:
    """As the questions show theirs."""
    out().print(Text.assemble((_MARK, "bold cyan"), (f" {message} ", "bold"), (answer, "cyan")))


def _ask(question: Question, more: KeyBindings | None = None) -> Any:
    application = question.application
    ours = [keys for keys in (application.key_bindings, more, _leaving_keys()) if keys is not None]
    application.key_bindings = merge_key_bindings(ours)  # of two for the same key, the last counts
    application.ttimeoutlen = _ESCAPE_SECONDS
    try:
        return question.unsafe_ask()
    except EOFError as error:  # the terminal has gone
        raise KeyboardInterrupt from error


def _leaving_keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add(Keys.Escape, eager=True)
    @keys.add(Keys.ControlD, eager=True)
    @keys.add(Keys.ControlC, eager=True)
    @keys.add(Keys.SIGINT, eager=True)
    def leave(event: KeyPressEvent) -> None:
        event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys


def _control(question: Question) -> InquirerControl:
    windows = question.application.layout.find_all_windows()
    return next(window.content for window in windows if isinstance(window.content, InquirerControl))


def _long_list_keys(control: InquirerControl) -> KeyBindings:
    """What questionary's own keys lack, or do by accident, where there are hundreds of choices."""
    keys = KeyBindings()

    @keys.add(Keys.PageDown, eager=True)
    def page_down(_: KeyPressEvent) -> None:
        control.pointed_at = min(control.pointed_at + _PAGE, control.choice_count - 1)

    @keys.add(Keys.PageUp, eager=True)
    def page_up(_: KeyPressEvent) -> None:
        control.pointed_at = max(control.pointed_at - _PAGE, 0)

    @keys.add(Keys.ControlU, eager=True)
    def search_anew(_: KeyPressEvent) -> None:
        control.search_filter, control.pointed_at = None, 0

    @keys.add(Keys.Tab, eager=True)
    @keys.add(Keys.ControlA, eager=True)
    def nothing(_: KeyPressEvent) -> None:
        """These would tick everything there is, which nobody could pay for."""

    @keys.add(" ", eager=True)
    def toggle(_: KeyPressEvent) -> None:
        there = control.filtered_choices  # asked for first: it is what finds out whether anything was found
        if control.search_filter and not control.found_in_search:
            return  # everything is shown then, and the first of it is not what was searched for
        value = there[control.pointed_at].value
        (control.selected_options.remove if value in control.selected_options else control.selected_options.append)(
            value
        )
        control.error_message = None

    return keys
