"""Ask questions at a terminal. Ctrl-C, Ctrl-D and Esc restore it and raise `KeyboardInterrupt`.

Options map the value of each answer to the text that is shown.
"""

from collections.abc import Callable, Mapping
from typing import Any

import questionary
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings
from prompt_toolkit.keys import Keys
from questionary.prompts.common import InquirerControl
from questionary.question import Question
from rich.text import Text

from bakeoff.cli.console import out

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
_LOOK: dict[str, Any] = {"qmark": "?", "style": _STYLE}
_LIST_LOOK: dict[str, Any] = {**_LOOK, "pointer": "›"}
_ESCAPE_SECONDS = 0.1  # the arrows begin with Esc too, but arrive within this time


def select(message: str, options: Mapping[str, str], *, keep: bool = True) -> str:
    """Ask for one of the options. Without `keep`, erase the question afterwards."""
    question = questionary.select(
        message,
        [questionary.Choice(title, value) for value, title in options.items()],
        instruction="(arrows, enter)",
        erase_when_done=not keep,
        **_LIST_LOOK,
    )
    return str(_ask(question))


def select_several(message: str, options: Mapping[str, str]) -> list[str]:
    """Ask for one or more of the options, and print the selection. Typing searches the texts."""

    def how_many() -> str:
        _ = control.filtered_choices  # this property also sets `found_in_search`
        nothing = "nothing found" if control.search_filter and not control.found_in_search else ""
        count = len(control.selected_options)  # most of them are hidden while searching
        return ", ".join(filter(None, (nothing, f"{count} selected" if count else "")))

    question = questionary.checkbox(
        message,
        [questionary.Choice(title, value) for value, title in options.items()],
        validate=lambda chosen: True if chosen else "select at least one with space",
        use_jk_keys=False,
        use_search_filter=True,
        instruction="(type to search, space to select, enter)",
        rprompt=how_many,
        erase_when_done=True,  # questionary would print how many were selected, not which
        **_LIST_LOOK,
    )
    windows = question.application.layout.find_all_windows()
    control = next(window.content for window in windows if isinstance(window.content, InquirerControl))
    chosen: list[str] = _ask(question, _long_list_keys(control))
    out().print(Text.assemble(("?", "bold cyan"), (f" {message} ", "bold"), (", ".join(chosen), "cyan")))
    return chosen


def type_in(message: str, default: str, check: Callable[[str], str | None]) -> str:
    """Ask for a line of text. `check` returns what is wrong with it, or None."""
    question = questionary.text(
        message,
        default=default,
        validate=lambda text: check(text.strip()) or True,
        validate_while_typing=False,
        **_LOOK,
    )
    return str(_ask(question)).strip()


def confirm(message: str, *, default: bool) -> bool:
    """Ask a yes-or-no question."""
    return bool(_ask(questionary.confirm(message, default=default, auto_enter=False, **_LOOK)))


def _ask(question: Question, more: KeyBindings | None = None) -> Any:
    keys = KeyBindings()

    @keys.add(Keys.Escape, eager=True)
    @keys.add(Keys.ControlD, eager=True)
    @keys.add(Keys.ControlC, eager=True)
    @keys.add(Keys.SIGINT, eager=True)
    def leave(event: KeyPressEvent) -> None:
        event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    application = question.application
    ours = [known for known in (application.key_bindings, more, keys) if known is not None]
    application.key_bindings = merge_key_bindings(ours)  # the last binding of a key wins
    application.ttimeoutlen = _ESCAPE_SECONDS
    try:
        return question.unsafe_ask()
    except EOFError as error:  # the terminal is gone
        raise KeyboardInterrupt from error


def _long_list_keys(control: InquirerControl) -> KeyBindings:
    """Return key bindings for long lists: add keys that questionary lacks; disable harmful ones."""
    keys = KeyBindings()

    @keys.add(Keys.ControlU, eager=True)
    def clear_search(_: KeyPressEvent) -> None:
        control.search_filter, control.pointed_at = None, 0

    @keys.add(Keys.Tab, eager=True)
    @keys.add(Keys.ControlA, eager=True)
    def nothing(_: KeyPressEvent) -> None:
        """Ignore these keys, which would select every model in the list."""

    @keys.add(" ", eager=True)
    def toggle(_: KeyPressEvent) -> None:
        choices = control.filtered_choices  # this property also sets `found_in_search`
        if control.search_filter and not control.found_in_search:
            return  # all choices are shown then, and the first one does not match the search
        value, selected = choices[control.pointed_at].value, control.selected_options
        (selected.remove if value in selected else selected.append)(value)
        control.error_message = None

    return keys
