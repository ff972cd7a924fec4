"""Three small suites and forty candidates for them: right, wrong in parts, wrong altogether, and not compiling."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["right", "mixed", "wrong", "broken"]

COUNTER_TEST = """
import { render, screen } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import { describe, expect, test } from 'vitest';
import Component from './Component.svelte';

describe('Counter', () => {
  test('starts where it is told to', () => {
    render(Component, { start: 2 });
    expect(screen.getByRole('button')).toHaveTextContent('count 2');
  });
  test('counts clicks', async () => {
    render(Component);
    const user = userEvent.setup();
    await user.click(screen.getByRole('button'));
    await user.click(screen.getByRole('button'));
    expect(screen.getByRole('button')).toHaveTextContent('count 2');
  });
  describe('the double', () => {
    test('is shown', () => {
      render(Component, { start: 4 });
      expect(screen.getByTestId('double')).toHaveTextContent(/^8$/);
    });
  });
});
"""
LIST_TEST = """
import { render, screen, within } from '@testing-library/svelte';
import userEvent from '@testing-library/user-event';
import Component from './Component.svelte';

describe('Tasks', () => {
  it('shows what it is given', () => {
    render(Component, { props: { tasks: ['a', 'b'] } });
    expect(screen.getAllByRole('listitem')).toHaveLength(2);
  });
  it('adds a task', async () => {
    render(Component, { props: { tasks: [] } });
    const user = userEvent.setup();
    await user.type(screen.getByLabelText('New task'), 'wash{Enter}');
    expect(within(screen.getByRole('list')).getByText('wash')).toBeInTheDocument();
    expect(screen.getByLabelText('New task')).toHaveValue('');
  });
  it('names its input', () => {
    render(Component, { props: { tasks: ['a'] } });
    expect(screen.getByRole('textbox')).toHaveAccessibleName('New task');
  });
  it.each([0, 3])('says how many of %i', (many) => {
    render(Component, { props: { tasks: Array.from({ length: many }, (_, i) => `t${i}`) } });
    expect(screen.getByText(`${many} left`)).toBeVisible();
  });
});
"""
RUNES_TEST = """
import { flushSync } from 'svelte';
import { render, screen } from '@testing-library/svelte';
import Component from './Component.svelte';

test('follows its value', () => {
  let value: string = $state('one');
  render(Component, { get value() { return value; } });
  expect(screen.getByRole('status')).toHaveTextContent('one');
  flushSync(() => { value = 'two'; });
  expect(screen.getByRole('status')).toHaveTextContent('two');
});
test('tells of each change', () => {
  const heard = vi.fn();
  let value = $state(1);
  render(Component, { get value() { return value; }, onchange: heard });
  flushSync(() => { value = 2; });
  expect(heard).toHaveBeenLastCalledWith(2);
});
"""


def counter(
    *,
    start: str = "start",
    step: str = "count += 1",
    double: str = "count * 2",
    more: str = "",
    text: str = "count {count}",
) -> str:
    return f"""<script lang="ts">
  let {{ start = 0 }}: {{ start?: number }} = $props();
  let count: number = $state({start});
  const double = $derived({double});
  {more}
</script>
<button onclick={{() => {{ {step}; }}}}>{text}</button>
<p data-testid="double">{{double}}</p>
<style>button {{ color: red; }}</style>
"""


def tasks(
    *, add: str = "items.push(draft)", clear: str = "draft = ''", many: str = "items.length", key: str = "i"
) -> str:
    return f"""<script>
  let {{ tasks = [] }} = $props();
  let items = $state([...tasks]);
  let draft = $state('');
  function submit(event) {{
    event.preventDefault();
    {add};
    {clear};
  }}
</script>
<form onsubmit={{submit}}><label>New task <input bind:value={{draft}} /></label></form>
<ul>{{#each items as item, i ({key})}}<li>{{item}}</li>{{/each}}</ul>
<p>{{{many}}} left</p>
"""


def follower(*, shown: str = "{value}", effect: str = "onchange(value)", role: str = "status") -> str:
    return f"""<script>
  let {{ value, onchange = () => {{}} }} = $props();
  $effect(() => {{ {effect}; }});
</script>
<output role="{role}">{shown}</output>
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    name: str
    kind: Kind
    component: str
    test_name: str
    test: str

    @property
    def files(self) -> dict[str, str]:
        return {"Component.svelte": self.component, self.test_name: self.test}


_SOURCES: list[tuple[str, str, list[tuple[Kind, str]]]] = [
    (
        "test.ts",
        COUNTER_TEST,
        [
            ("right", counter()),
            ("right", counter(step="count++")),
            ("right", counter(double="count + count")),
            ("right", counter(more="$effect(() => { document.title = String(count); });")),
            ("right", counter(text="{`count ${count}`}")),
            ("mixed", counter(double="count * 3")),
            ("mixed", counter(step="count += 2")),
            ("mixed", counter(start="0")),
            ("mixed", counter(more="let unused = $state.raw([1]);", step="start")),
            ("wrong", "<p>hello</p>"),
            ("wrong", counter(more="throw new Error('never');")),
            ("wrong", counter(more="missing();")),
            ("wrong", ""),
            ("broken", counter(more="let count = 1;")),
            ("broken", "{#if}"),
            ("broken", "<script>let a = $state(</script>"),
        ],
    ),
    (
        "test.ts",
        LIST_TEST,
        [
            ("right", tasks()),
            ("right", tasks(add="items = [...items, draft]")),
            ("right", tasks(many="$state.snapshot(items).length")),
            ("mixed", tasks(clear="")),
            ("mixed", tasks(many="items.length + 1")),
            ("mixed", tasks(add="items.length")),
            ("mixed", tasks(add="items.push('x')")),
            ("wrong", "<ul></ul>"),
            ("wrong", tasks(key="item.missing.key")),
            ("wrong", "<script>import './nothing.js';</script>"),
            ("broken", tasks(many="items.")),
            ("broken", "<script>export let tasks;</script>"),
            ("broken", "<ul><li></ul></li>"),
        ],
    ),
    (
        "test.svelte.ts",
        RUNES_TEST,
        [
            ("right", follower()),
            ("right", follower(shown="{String(value)}")),
            ("right", follower(effect="onchange($state.snapshot(value))")),
            ("mixed", follower(effect="")),
            ("mixed", follower(role="note")),
            ("mixed", follower(shown="{value}!", effect="onchange(0)")),
            ("mixed", follower(effect="setTimeout(() => onchange(value))")),
            ("wrong", follower(role="note", effect="")),
            ("wrong", follower(effect="value.missing.part")),
            ("broken", follower(shown="{value")),
            ("broken", "<output>{@html}</output>"),
        ],
    ),
]

CANDIDATES = tuple(
    Candidate(f"{suite}-{number:02}-{kind}", kind, component, test_name, test)
    for suite, (test_name, test, sources) in zip(("counter", "tasks", "follower"), _SOURCES, strict=True)
    for number, (kind, component) in enumerate(sources)
)
assert len(CANDIDATES) == 40
