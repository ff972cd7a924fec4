from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def neutral_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove what the machine of these tests may set, such as the variables of GitHub."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "CI", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
