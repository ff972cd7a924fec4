"""Ask questions at a terminal. Ctrl-C and Ctrl-D raise `KeyboardInterrupt` once the terminal is restored.

Esc goes back one question within `with_going_back`, and leaves like Ctrl-C at the first one, or anywhere else.
"""

from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

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
_T = TypeVar("_T")
_ESCAPE_SECONDS = 0.1  # the arrows begin with Esc too, but arrive within this time
_PAGE = 10


class _Back(Exception):
    """The person wants the question before."""


@dataclass(slots=True)
class _Dialogue:
    """The answers so far. After a step back, the flow starts again and gets all but the last of them at once."""

    known: list[Any]
    given: list[Any] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # the messages of the questions that were answered
    before: Sequence[tuple[str, Any]] = ()  # the questions before the step back, and their answers

    @property
    def is_repeating(self) -> bool:
        return len(self.given) < len(self.known)

    def suggested(self, message: str, default: _T) -> _T:
        """Return what was answered to this question before a step back, or else its default."""
        earlier: tuple[str, Any] = self.before[len(self.given)] if len(self.given) < len(self.before) else ("", None)
        return earlier[1] if earlier[0] == message else default


_DIALOGUE: ContextVar[_Dialogue | None] = ContextVar("dialogue", default=None)


def with_going_back(flow: Callable[[], _T]) -> _T:
    """Run a flow of questions in which Esc goes back one question. It may run several times, with the same answers."""
    known: list[Any] = []
    before: list[tuple[str, Any]] = []
    while True:
        dialogue = _Dialogue(known, before=before)
        token = _DIALOGUE.set(dialogue)
        try:
            return flow()
        except _Back:
            if not dialogue.given:
                raise KeyboardInterrupt from None
            known = dialogue.given[:-1]
            answered = list(zip(dialogue.asked, dialogue.given, strict=True))
            before = [*answered, *before[len(answered) :]]
        finally:
            _DIALOGUE.reset(token)


def is_repeating() -> bool:
    """Tell whether the next question has been answered before a step back, so that nothing need be shown for it."""
    dialogue = _DIALOGUE.get()
    return dialogue is not None and dialogue.is_repeating


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
        default=default if (default := _suggested(message, default)) in [option.value for option in options] else None,
        qmark=_MARK,
        pointer=_POINTER,
        style=_STYLE,
        instruction="(arrows, enter)",
        erase_when_done=not keep,
    )
    return str(_ask(message, question))


def select_several(message: str, options: Sequence[Option], selected: Collection[str]) -> list[str]:
    """Ask for at least one of the options. Typing searches in the texts."""
    selected = _suggested(message, selected)

    def how_many() -> str:
        control = _control(question)
        _ = control.filtered_choices  # this property also sets `found_in_search`
        nothing = "nothing found" if control.search_filter and not control.found_in_search else ""
        count = len(control.selected_options)  # most of them are hidden while searching
        return ", ".join(filter(None, (nothing, f"{count} selected" if count else "")))

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
    chosen: list[str] = _ask(message, question, _long_list_keys(_control(question)))
    return chosen


def type_in(message: str, default: str, check: Callable[[str], str | None], instruction: str | None = None) -> str:
    """Ask for a line of text. `check` returns what is wrong with it, or None."""
    question = questionary.text(
        message,
        default=_suggested(message, default),
        validate=lambda text: check(text.strip()) or True,
        qmark=_MARK,
        style=_STYLE,
        instruction=instruction,
        validate_while_typing=False,
    )
    return str(_ask(message, question)).strip()


def confirm(message: str, *, default: bool) -> bool:
    """Ask a yes-or-no question."""
    default = _suggested(message, default)
    question = questionary.confirm(message, default=default, qmark=_MARK, style=_STYLE, auto_enter=False)
    return bool(_ask(message, question))


def advice(error: UsageError) -> str:
    """Return the advice at the end of an error message: a prompt has room for one line."""
    from bakeoff._kernel.text import visible  # takes half a second to load

    return visible(str(error).rpartition(": ")[2])


def show_answer(message: str, answer: str) -> None:
    """Print an answer as the questions do."""
    if is_repeating():
        return
    out().print(Text.assemble((_MARK, "bold cyan"), (f" {message} ", "bold"), (answer, "cyan")))


def _suggested(message: str, default: _T) -> _T:
    dialogue = _DIALOGUE.get()
    return default if dialogue is None else dialogue.suggested(message, default)


def _ask(message: str, question: Question, more: KeyBindings | None = None) -> Any:
    dialogue = _DIALOGUE.get()
    if dialogue is not None and dialogue.is_repeating:
        answer = dialogue.known[len(dialogue.given)]
    else:
        answer = _ask_now(question, more)
    if dialogue is not None:
        dialogue.given.append(answer)
        dialogue.asked.append(message)
    return answer


def _ask_now(question: Question, more: KeyBindings | None) -> Any:
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
    def back(event: KeyPressEvent) -> None:
        leaving = _Back if _DIALOGUE.get() is not None else KeyboardInterrupt
        event.app.exit(exception=leaving, style="class:aborting")

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
