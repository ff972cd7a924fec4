"""Register a provider in Python, and run an evaluation. Start with `python with_register.py`."""

from keyword_provider import KeywordProvider  # type: ignore[import-not-found]

from bakeoff import evaluate_mcp, register_provider


def main() -> None:
    register_provider("keywords", KeywordProvider)
    report = evaluate_mcp("mcp-testing-framework.yaml")
    print(f"{report.summary.passedTests} of {report.summary.totalTests} passed")  # noqa: T201 - a script


if __name__ == "__main__":
    main()
