"""The reference of `bakeoff mcp lint`: one section, and so one anchor, for each rule."""

from scripts.docs_site.markdown import table

from bakeoff.mcp.lint import LEVELS, RULES


def rule_reference() -> str:
    """Return a table of all rules, the worst first, and a section for each."""
    rules = sorted(RULES.values(), key=lambda rule: LEVELS.index(rule.level))
    rows = [(f"[`{rule.id}`](#{rule.id})", rule.level, rule.title) for rule in rules]
    sections = [
        f"### `{rule.id}` {{ #{rule.id} }}\n\n**{rule.level}** · {rule.title}. {rule.why}\n\nFix: {rule.how}"
        for rule in rules
    ]
    return "\n\n".join([table(("rule", "level", "finds"), rows), *sections])
