"""Configurations that can be read, and what they mean."""

from pathlib import Path

from bakeoff.doors.mcp.expectations import unknown_tools
from bakeoff.mcp import ServerTool

from .config_texts import GOOD, SEED, changed


def test_a_file_with_a_byte_order_mark_and_windows_line_ends_is_read(read):
    assert read(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()).config == read(GOOD).config


def test_the_configuration_of_the_other_tool_means_what_it_says(read):
    config = read(SEED).config
    assert (config.testRound, config.threshold, config.concurrencyLimit) == (10, 0.8, 5)
    assert config.modelsToTest == ("local:smollm2", "custom:my-model")
    assert [server.transport for server in config.mcpServers] == ["stdio", "sse"]
    assert config.mcpServers[0].args == ("-y", "mcp-server")
    assert config.mcpServers[0].env == {"KEY": "value"}
    calls = config.testCases[0].expectedOutput
    assert calls is not None
    assert [call.toolName for call in calls] == ["calculate-bmi"]
    assert calls[0].parameters == {"weightKg": 90, "heightM": 1.8}
    assert (config.mode, config.extraParameters, config.executeTools) == ("json", "reject", None)


def test_an_expected_call_that_no_server_offers_is_a_warning_with_near_names(read, tmp_path: Path):
    suite = read(SEED)
    told = unknown_tools(suite, [ServerTool(server="local-server", name="calculate_bmi", input_schema={})])
    assert [warning.removeprefix(f"{tmp_path}/") for warning in told] == [
        "suite.yaml:12: testCases[0].expectedOutput.serverName: no server is called 'example-server': "
        "did you mean 'remote-server', 'local-server'?",
        "suite.yaml:19: testCases[1].expectedOutput.serverName: no server is called 'healthcare-server': "
        "did you mean 'local-server', 'remote-server'?",
    ]
    suite = read(GOOD)
    tools = [ServerTool(server="weather", name=name, input_schema={}) for name in ("forecasts", "alerts")]
    (warning,) = unknown_tools(suite, tools)
    assert warning.endswith("toolName: 'weather' has no tool 'forecast': did you mean 'forecasts'?")
    assert unknown_tools(suite, [ServerTool(server="weather", name="forecast", input_schema={})]) == []


def test_variables_are_filled_in_except_where_servers_are_told_secrets(read):
    text = changed("weather-server", "${TOOLS}/server") + "    env: {TOKEN: '${TOKEN}'}\n"
    (server,) = read(text, TOOLS="/opt", TOKEN="hush").config.mcpServers
    assert server.command == "/opt/server"
    assert server.env == {"TOKEN": "${TOKEN}"}


def test_settings_of_one_model_stand_beside_those_of_all(read):
    config = read(GOOD + "modelSettings:\n  temperature: 0.5\n  local:smollm2: {maxTokens: 9}\n").config
    settings = config.settings_of("local:smollm2")
    assert (settings.temperature, settings.max_tokens) == (0.5, 9)
