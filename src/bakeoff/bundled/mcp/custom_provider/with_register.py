"""The third way: register a provider from Python, and evaluate from there. Run it with `python with_register.py`."""

from keyword_provider import KeywordProvider  # type: ignore[import-not-found]

from bakeoff import register_provider
from bakeoff.doors.mcp_suite.api import evaluate


def main() -> None:
    register_provider("keywords", KeywordProvider)
    report = evaluate("mcp-testing-framework.yaml")
    print(f"{report.summary.passedTests} of {report.summary.totalTests} passed")  # noqa: T201 - a script


if __name__ == "__main__":
    main()
