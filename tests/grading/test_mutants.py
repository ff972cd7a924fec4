"""Mutants: one small fault each, valid syntax, the same for the same seed."""

import ast

import pytest

from bakeoff.grading.mutants import choose_mutants, find_mutants
from bakeoff.grading.syntax import parse


def faults(name: str, text: str) -> set[tuple[str, str, str]]:
    return {(mutant.kind, mutant.before, mutant.after) for mutant in find_mutants({name: text})}


PYTHON = '''\
"""A docstring is no code."""
from math import floor


def pick(values: "list[int]", low=1):
    """Neither is this."""
    if not values:
        return None
    best = [value for value in values if value >= low and value != 3]
    place(best, low)
    return "none" if floor(-low) == 0 else best
'''
TYPESCRIPT = """\
import { log } from './log'

type Kind = 'a' | 'b'
export function pick(values: number[], low = 1): Kind | undefined {
  if (!values.length) return undefined
  let count = 0
  for (const value of values) {
    if (value > low && value !== 3) {
      count++
    } else {
      log('odd', value)
    }
  }
  const more = () => count + 1
  return more() === 2 ? 'a' : 'b'
}
"""
SVELTE = """\
<script lang="ts">
  import { tick } from 'svelte';
  let { step = 1 }: { step?: number } = $props();
  let count = $state(0);
</script>

<!-- {nothing > here} -->
{#if count > 3}<p class="{count ? 'many' : ''}">a } brace: {'}' + count}</p>{:else if !step}<b></b>{/if}
{#each [1, 2] as item (item)}<i>{item}</i>{/each}
<button onclick={() => (count += step)}>{count}</button>
<style>
  p { margin: 0 }
</style>
"""


def test_python_is_mutated_where_it_decides_something() -> None:
    found = faults("pick.py", PYTHON)
    assert found >= {
        ("negated condition", "not values", "(values)"),
        ("dropped early return", "return None", "pass"),
        ("comparison", ">=", ">"),
        ("off by one", "3", "4"),
        ("boolean operator", "and", "or"),
        ("off by one", "1", "2"),
        ("dropped statement", "place(best, low)", "pass"),
        ("swapped arguments", "best, low", "low, best"),
        ("emptied text", '"none"', '""'),
        ("arithmetic operator", "-", ""),
        ("emptied collection", "[value for value in values if value >= low and value != 3]", "[]"),
    }
    assert not any("docstring" in before or "list[int]" in before or before == "floor" for _, before, _ in found)


def test_typescript_is_mutated_outside_of_its_types_and_imports() -> None:
    found = faults("pick.ts", TYPESCRIPT)
    assert found >= {
        ("negated condition", "!values.length", "(values.length)"),
        ("dropped early return", "return undefined", "{}"),
        ("comparison", ">", ">="),
        ("boolean operator", "&&", "||"),
        ("dropped branch", "{ count++ }", "{}"),
        ("dropped branch", "{ log('odd', value) }", "{}"),
        ("arithmetic operator", "++", "--"),
        ("constant result", "count + 1", "undefined"),
        ("swapped arguments", "'odd', value", "value, 'odd'"),
        ("negated condition", "more() === 2", "!(more() === 2)"),
    }
    assert sum(before == "'a'" for _, before, _ in found) == 1  # the one in the type stays as it is
    assert not any("./log" in before for _, before, _ in found)


def test_the_script_and_the_expressions_of_a_component_are_mutated() -> None:
    found = find_mutants({"Component.svelte": SVELTE})
    assert {(mutant.line, mutant.kind, mutant.before, mutant.after) for mutant in found} == {
        (3, "off by one", "1", "2"),
        (4, "off by one", "0", "1"),
        (8, "negated condition", "count > 3", "!(count > 3)"),
        (8, "comparison", ">", ">="),
        (8, "off by one", "3", "4"),
        (8, "negated condition", "count", "!(count)"),
        (8, "emptied text", "'many'", "''"),
        (8, "arithmetic operator", "+", "-"),
        (8, "emptied text", "'}'", "''"),
        (8, "negated condition", "!step", "(step)"),
        (9, "emptied collection", "[1, 2]", "[]"),
        (9, "off by one", "1", "2"),
        (9, "off by one", "2", "3"),
        (10, "constant result", "count += step", "undefined"),
        (10, "arithmetic operator", "+=", "-="),
    }
    changed = next(mutant for mutant in found if mutant.after == "''").apply({"Component.svelte": SVELTE})
    assert "{count ? '' : ''}" in changed["Component.svelte"]


@pytest.mark.parametrize(("name", "text"), [("pick.py", PYTHON), ("pick.ts", TYPESCRIPT)])
def test_every_mutant_is_valid_and_different(name: str, text: str) -> None:
    results = [mutant.apply({name: text})[name] for mutant in find_mutants({name: text})]
    assert len({text, *results}) == len(results) + 1
    assert not any(parse(name, result).has_error for result in results)
    if name.endswith(".py"):
        assert all(ast.parse(result) for result in results)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "def f(a, b):\n    return max(a, b)\n"),
        ("a.py", "def f(a, b):\n    return a if a > b else b\n"),
        ("a.ts", "export const f = (a: number, b: number) => (a > b ? a : b)\n"),
        ("a.ts", "export const f = (a: number, b: number) => Math.min(a, b)\n"),
    ],
)
def test_a_change_that_obviously_changes_nothing_is_marked(name: str, text: str) -> None:
    marked = [mutant for mutant in find_mutants({name: text}) if mutant.equivalent]
    assert [mutant.kind for mutant in marked] in (["swapped arguments"], ["comparison"])


def test_a_file_of_another_language_has_no_mutants() -> None:
    assert find_mutants({"words.txt": "one\ntwo\n", "broken.py": "def ("}) == []


def test_the_sample_depends_on_the_seed_only_and_has_every_kind() -> None:
    found = find_mutants({"pick.py": PYTHON})
    chosen = choose_mutants(found, 10, "0 pick")
    assert chosen == choose_mutants(find_mutants({"pick.py": PYTHON}), 10, "0 pick")
    assert chosen != choose_mutants(found, 10, "1 pick")
    assert len(chosen) == 10
    assert len({mutant.kind for mutant in chosen}) == 10
    assert choose_mutants(found, 1000, "0 pick") == found


VUE = """<script setup lang="ts">
import { ref } from 'vue';
const count = ref(1);
</script>

<template>
  <p v-if="count > 1" class="big" :title="`at ${count}`">{{ count === 2 ? 'two' : count }}</p>
  <li v-for="n in count - 1" :key="n"><input v-model="count" @input="count = 5" /></li>
</template>
"""


def test_the_script_and_the_expressions_of_a_vue_component_are_mutated() -> None:
    assert faults("Component.vue", VUE) == {
        ("off by one", "1", "2"),
        ("negated condition", "count > 1", "!(count > 1)"),
        ("comparison", ">", ">="),
        ("emptied text", "`at ${count}`", "''"),
        ("negated condition", "count === 2", "!(count === 2)"),
        ("off by one", "2", "3"),
        ("emptied text", "'two'", "''"),
        ("arithmetic operator", "-", "+"),
        ("off by one", "5", "6"),
    }
    changed = next(each for each in find_mutants({"A.vue": VUE}) if each.before == "'two'").apply({"A.vue": VUE})
    assert "{{ count === 2 ? '' : count }}" in changed["A.vue"]


def test_plain_attributes_of_jsx_are_left_as_they_are() -> None:
    assert faults("A.tsx", "const a = <p className=\"big\" title={'a'}>{1}</p>\n") == {
        ("emptied text", "'a'", "''"),
        ("off by one", "1", "2"),
    }
