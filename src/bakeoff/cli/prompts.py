"""Ask questions at a terminal. Ctrl-C, Ctrl-D and Esc raise `KeyboardInterrupt` once the terminal is restored."""

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
_ESCAPE_SECONDS = 0.1  # the arrows begin with Esc too, but arrive within this time
_PAGE = 10


@dataclass(frozen=True, slots=True)
class Option:
    """One of several answers, and the text that is shown for it."""

    value: str
    title: str


def select(message: str, options: Sequence[Option], default: str | None = None, *, keep: bool = True) -> str:
    """Ask for one of the options. The pointer starts at `default`. Without `keep`, the question is erased."""
    question = questionary.select(
        message,
        [questionary.Choice(option.title, option.value) for option in options],
        default=default if default in [option.value for option in options] else None,
        qmark=_MARK,
        pointer=_POINTER,
        style=_STYLE,
        instruction="(arrows, enter)",
        erase_when_done=not keep,
    )
    return str(_ask(question))


def select_several(message: str, options: Sequence[Option], selected: Collection[str]) -> list[str]:
    """Ask for at least one of the options. Typing searches in the texts."""

    def how_many() -> str:
        count = len(_control(question).selected_options)
        return f"{count} selected" if count else ""  # most of them are hidden while searching

    question = questionary.checkbox(
        message,
        [questionary.Choice(option.title, option.value, checked=option.value in selected) for option in options],
        validate=lambda chosen: True if chosen else "select at least one with space",
        qmark=_MARK,
        pointer=_POINTER,
        style=_STYLE,
        use_jk_keys=False,
        use_search_filter=True,
        instruction="(type to search, space to select, enter)",
        rprompt=how_many,
        erase_when_done=True,  # questionary would print how many were selected, not which
    )
    chosen: list[str] = _ask(question, _long_list_keys(_control(question)))
    return chosen


def type_in(message: str, default: str, check: Callable[[str], str | None], instruction: str | None = None) -> str:
    """Ask for a line of text. `check` returns what is wrong with it, or None."""
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


def confirm(message: str, *, default: bool) -> bool:
    """Ask a yes-or-no question."""
    return bool(_ask(questionary.confirm(message, default=default, qmark=_MARK, style=_STYLE, auto_enter=False)))


def advice(error: UsageError) -> str:
    """Return the advice at the end of an error message: a prompt has room for one line."""
    from bakeoff.report.formatting import visible  # takes half a second to load

    return visible(str(error).rpartition(": ")[2])


def show_answer(message: str, answer: str) -> None:
    """Print an answer as the questions do."""
    out().print(Text.assemble((_MARK, "bold cyan"), (f" {message} ", "bold"), (answer, "cyan")))


def _ask(question: Question, more: KeyBindings | None = None) -> Any:
    application = question.application
    ours = [keys for keys in (application.key_bindings, more, _leaving_keys()) if keys is not None]
    application.key_bindings = merge_key_bindings(ours)  # the last one for a key counts
    application.ttimeoutlen = _ESCAPE_SECONDS
    try:
        return question.unsafe_ask()
    except EOFError as error:  # the terminal is gone
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
    """Return keys for lists of hundreds of choices: what questionary lacks, or does by accident."""
    keys = KeyBindings()

    @keys.add(Keys.PageDown, eager=True)
    def page_down(_: KeyPressEvent) -> None:
        control.pointed_at = min(control.pointed_at + _PAGE, control.choice_count - 1)

    @keys.add(Keys.PageUp, eager=True)
    def page_up(_: KeyPressEvent) -> None:
        control.pointed_at = max(control.pointed_at - _PAGE, 0)

    @keys.add(Keys.ControlU, eager=True)
    def clear_search(_: KeyPressEvent) -> None:
        control.search_filter, control.pointed_at = None, 0

    @keys.add(Keys.Tab, eager=True)
    @keys.add(Keys.ControlA, eager=True)
    def nothing(_: KeyPressEvent) -> None:
        """Ignore these keys: they would select every model there is."""

    @keys.add(" ", eager=True)
    def toggle(_: KeyPressEvent) -> None:
        choices = control.filtered_choices  # this property also sets `found_in_search`
        if control.search_filter and not control.found_in_search:
            return  # all choices are shown then, and the first one is not what the person searched for
        value = choices[control.pointed_at].value
        (control.selected_options.remove if value in control.selected_options else control.selected_options.append)(
            value
        )
        control.error_message = None

    return keys
