"""Convert plans of older versions when they are read, so that all other code knows one form only."""

from typing import Any

from bakeoff.plan import PassRule, Plan, SubjectSpec

_OLD_DOORS = {"exercises": "agents"}
_KEPT = ("suiteRule", "concurrencyLimit", "serverScope", "retryConfig", "gradingPrompt")
_PROVIDER_OPTIONS = {"target": "target", "baseUrl": "base_url", "apiKeyVariable": "key_variable", "options": "options"}


def in_current_form(plan: Plan) -> Plan:
    """Return a plan that older versions may have written in the form of this version.

    Old plans name the door of agents by its former name. Old plans of MCP suites contain the whole configuration, and
    their cases contain no pass rules.
    """
    if plan.door in _OLD_DOORS:
        return plan.model_copy(update={"door": _OLD_DOORS[plan.door]})
    config: Any = plan.settings.get("config")
    if plan.door != "mcp" or not isinstance(config, dict):
        return plan
    threshold = config.get("passThreshold")
    threshold = 1.0 if threshold is None else threshold
    rule = PassRule(gate="share", share=threshold)
    settings = {
        **{name: value for name, value in plan.settings.items() if name != "config"},
        **{name: config[name] for name in _KEPT if name in config},
        "servers": config.get("mcpServers"),
        "threshold": threshold,
        "judge": _judge(config) if config.get("judge") else None,
    }
    cases = tuple(case.model_copy(update={"pass_rule": rule}) for case in plan.cases)
    return plan.model_copy(update={"settings": settings, "cases": cases})


def _judge(config: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, dict[str, Any]] = config.get("providers", {})
    providers = {
        name: {new: provider[old] for old, new in _PROVIDER_OPTIONS.items() if provider.get(old)}
        for name, provider in given.items()
    }
    options = {"model": config["judge"], "temperature": 0, "max_tokens": 1024, "timeout": 60}
    if providers:
        options["providers"] = providers
    return SubjectSpec(kind="model", name="judge", options=options).model_dump(mode="json")
