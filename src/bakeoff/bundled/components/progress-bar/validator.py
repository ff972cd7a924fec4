"""Check that classes and styles are in the markup of a modern Svelte component."""

from __future__ import annotations

import re

LONGEST = 50_000
QUIET = re.compile(
    r"""/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`""",
    re.DOTALL,
)
SCRIPT = re.compile(r"<script\b[^>]*>(.*?)</script\s*>", re.DOTALL | re.IGNORECASE)
NOT_CODE = re.compile(r"<style\b[^>]*>.*?</style\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)

FORBIDDEN_IN_SCRIPT = {
    r"\bexport\s+let\b": "Props come from $props(), not from `export let`.",
    r"(?m)^[ \t]*\$:": "Use $derived, not `$:`.",
    r"\$effect\b": "Do it without $effect.",
    r"\bclassList\b": "Write classes in the markup, not with classList.",
    r"\bsetAttribute\b": "Write attributes in the markup, not with setAttribute.",
}
FORBIDDEN_IN_MARKUP = {
    r"\son:[a-z]+[=|/>]": "Use event attributes such as `onclick`, not `on:click`.",
    r"<slot\b": "Use snippets and {@render}, not `<slot>`.",
}


def validate(code: str) -> dict[str, object]:
    if len(code) > LONGEST:
        return {"valid": False, "errors": [f"The component is longer than {LONGEST} characters."]}
    code = NOT_CODE.sub("", code)
    script = "\n".join(QUIET.sub(_quieted, body) for body in SCRIPT.findall(code))
    markup = SCRIPT.sub("", code)
    errors = [message for pattern, message in FORBIDDEN_IN_SCRIPT.items() if re.search(pattern, script)]
    errors += [message for pattern, message in FORBIDDEN_IN_MARKUP.items() if re.search(pattern, markup)]
    if not re.search(r"\$props\b", script):
        errors.append("Use $props.")
    return {"valid": not errors, "errors": errors}


def _quieted(match: re.Match[str]) -> str:
    return " " if match[0].startswith("/") else "''"
