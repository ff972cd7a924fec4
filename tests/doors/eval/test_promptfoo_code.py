"""Configurations of promptfoo with code: its verdicts, with real workers of Node and Python."""

import csv
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from bakeoff.doors.eval.find import read_suite
from bakeoff.doors.eval.plan import build_plan
from bakeoff.engine.trust import what_runs

from ...warm_bakeoff import Bakeoff

pytestmark = pytest.mark.full

FILES = {
    "check.js": """\
module.exports = (output, context) => output.includes(context.vars.topic)
module.exports.short = (output, context) => ({ pass: output.length < context.config.max, score: 1, reason: '' })
""",
    "check.py": """\
def get_assert(output, context):
    return {"pass": context["vars"]["topic"] in output, "score": 0.5, "reason": "said"}
""",
    "provider.py": """\
def call_api(prompt, options, context):
    said = prompt + options["config"]["end"] + context["vars"]["topic"]
    return {"output": said, "tokenUsage": {"prompt": 2, "completion": 3}, "cost": 0.25}

def broken(prompt, options, context):
    return {"error": "no answer today"}
""",
    "provider.js": """\
module.exports = class {
  constructor(options) { this.end = options.config.end }
  id() { return 'mine' }
  async callApi(prompt, context) { return { output: prompt + this.end + context.vars.topic } }
}
""",
    "program.py": "import sys\nprint(sys.argv[1] + '!cats')\n",
    "prompts.py": "def make(context):\n    return [{'role': 'user', 'content': 'About {{ topic }}'}]\n",
    "prompts.js": "module.exports = async ({ vars }) => `Tell of ${vars.topic}`\n",
    "tests.py": "def more(config):\n    return [{'vars': {'topic': t}} for t in config['topics']]\n",
    "tests.js": "module.exports = () => [{ vars: { topic: 'js' }, assert: [{ type: 'contains', value: 'j' }] }]\n",
}

# Each assertion with the verdict that promptfoo's documentation gives it, for the answer `I like cats`.
VERDICTS = [
    ("{type: javascript, value: output.includes(context.vars.topic)}", True),
    ("{type: javascript, value: output.length > 50}", False),
    ("{type: javascript, value: output.length / 100, threshold: 0.2}", False),
    ("{type: javascript, value: output.length / 100, threshold: 0.1}", True),
    ("{type: javascript, value: \"const n = output.split(' ').length; n === 3\"}", True),
    (
        '{type: javascript, value: "if (output.length < 5) return false\\nreturn {pass: true, score: 0.1}"}',
        True,
    ),
    ('{type: javascript, value: "{{ topic }}.length"}', False),  # cats is not defined: code that raises fails
    ("{type: javascript, value: context.prompt === 'I like cats'}", True),
    ("{type: not-javascript, value: output.length > 50}", True),
    ("{type: javascript, value: file://check.js}", True),
    ("{type: javascript, value: 'file://check.js:short', config: {max: 5}}", False),
    ("{type: python, value: len(output) == 11}", True),
    ('{type: python, value: "import math\\nreturn math.sqrt(len(output)) > 4"}', False),
    ("{type: python, value: file://check.py}", True),
    ("{type: python, value: file://check.py, threshold: 0.6}", False),
    ("{type: equals, value: cats, transform: \"output.split(' ')[2]\"}", True),
    ("{type: equals, value: cats, transform: JSON.parse(output)}", False),
    ("{type: equals, value: ' I like cats'}", False),
    (
        "{type: assert-set, threshold: 0.5, assert: [{type: contains, value: cats}, {type: contains, value: dogs}]}",
        True,
    ),
    (
        "{type: assert-set, threshold: 0.6, assert: [{type: contains, value: cats}, {type: python, value: 'False'}]}",
        False,
    ),
    ("{type: assert-set, assert: [{type: contains, value: cats}, {type: contains, value: dogs}]}", False),
    ("{type: contains, value: dogs, weight: 0}, {type: contains, value: cats}", True),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def records(bakeoff: Bakeoff, text: str) -> list[dict[str, str]]:
    """Run a configuration, and return its trials."""
    Path("promptfooconfig.yaml").write_text(text)
    done = bakeoff("eval", "--no-open", "--jobs", "2")
    assert done.returncode in (0, 1), done.stderr
    found = bakeoff("export", "latest", "--format", "csv", "-o", "trials.csv")
    assert found.returncode == 0, found.stderr
    with Path("trials.csv").open() as file:
        return list(csv.DictReader(file))


def test_verdicts_of_code_transforms_sets_and_weights_are_those_of_promptfoo(bakeoff: Bakeoff):
    tests = "".join(
        f"  - {{description: case {at:02}, vars: {{topic: cats}}, assert: [{given}]}}\n"
        for at, (given, _) in enumerate(VERDICTS)
    )
    found = records(bakeoff, f'prompts: ["I like {{{{ topic }}}}"]\nproviders: [echo]\ntests:\n{tests}')
    verdicts = {each["case"]: each["verdict"] == "pass" for each in found}
    assert verdicts == {f"case {at:02}": passes for at, (_, passes) in enumerate(VERDICTS)}


PROVIDERS = """\
prompts: ["Say"]
providers:
  - {id: file://provider.py, config: {end: "!"}}
  - {id: file://provider.js, config: {end: "!"}}
  - exec:python program.py
  - {id: ADDRESS, label: web, config: {method: POST, headers: {X-Key: "{{ env.WEB_KEY }}"},
     body: {q: "{{ prompt }}!{{ topic }}"}, transformResponse: "json.choices[0].text"}}
  - {id: echo, label: shout, transform: "output + '!' + context.vars.topic"}
  - file://provider.py:broken
tests: [{vars: {topic: cats}, assert: [{type: equals, value: Say!cats}]}]
"""


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200 if self.headers["X-Key"] == "open" else 401)
        self.end_headers()
        self.wfile.write(json.dumps({"choices": [{"text": said["q"]}]}).encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/ask"
        server.shutdown()


def test_providers_of_code_programs_and_addresses_answer_as_in_promptfoo(
    bakeoff: Bakeoff, address: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WEB_KEY", "open")
    Path("promptfooconfig.yaml").write_text(PROVIDERS.replace("ADDRESS", address))
    done = bakeoff("eval", "--no-open", "--json", "--jobs", "2", WEB_KEY="open")
    found = {each["subject"]: each for each in json.loads(done.stdout)["summary"]["subjects"]}
    assert {name: one["passed"] for name, one in found.items()} == {
        **dict.fromkeys(("file://provider.py", "file://provider.js", "exec:python program.py", "web", "shout"), 1),
        "file://provider.py:broken": 0,
    }, done.stderr
    plan = build_plan(read_suite(None))
    named = " ".join(what_runs(plan))
    for told in ("code in python: file://provider.py", "code in javascript: file://provider.js", address, "program.py"):
        assert told in named, "imported and sealed runs name code before it runs"
    assert "open" not in plan.model_dump_json(), "keys stay in the environment"


def test_code_makes_prompts_and_tests(bakeoff: Bakeoff):
    text = (
        "prompts: [file://prompts.py:make, file://prompts.js]\nproviders: [echo]\n"
        "tests: [{path: file://tests.py:more, config: {topics: [cats, dogs]}}, file://tests.js]\n"
    )
    Path("promptfooconfig.yaml").write_text(text)
    plan = build_plan(read_suite(None))
    assert [" ".join(case.prompt.split()) for case in plan.cases] == [
        text
        for topic in ("cats", "dogs", "js")
        for text in (f'[ {{ "role": "user", "content": "About {topic}" }} ]', f"Tell of {topic}")
    ]
    assert bakeoff("eval", "--no-open").returncode == 0


CHAT = """\
prompts:
  - '[{"role": "system", "content": "Be {{ mood }}"}, {"role": "user", "content": "{{ q }}"}]'
  - |
    - role: user
      content: "{{ q }}"
    - role: assistant
      content: Go on
    - role: user
      content: "{{ mood | upper }}{% if unset %}!{% endif %}"
providers: ["scripted:answers.json"]
tests: [{vars: {q: 'a "quoted" word', mood: calm}, assert: [{type: equals, value: fine}]}]
"""


def test_chat_prompts_are_sent_as_their_messages(here: Path, bakeoff: Bakeoff):
    replies = [{"to": "CALM", "step": 1, "say": "fine"}, {"to": 'a "quoted" word', "step": 0, "say": "fine"}]
    (here / "answers.json").write_text(json.dumps({"replies": replies}))
    found = records(bakeoff, CHAT)
    assert [each["verdict"] for each in found] == ["pass", "pass"]


def test_nunjucks_fills_as_in_promptfoo():
    prompt = "{{ data | dump }} {{ data.on }} {{ none or 3 }}{% set n = 2 %} {{ n }} {{ gone.far }}{{ html | safe }}"
    prompt += (
        "{% for k, v in data %}{{ k }}{% endfor %} {{ data.items }}{{ data.a.length }}{% if n === 2 %}!{% endif %}"
    )
    values = "{data: {a: [1], on: true}, html: '<b>', none: null}"
    Path("promptfooconfig.yaml").write_text(f"prompts: ['{prompt}']\nproviders: [echo]\ntests: [{{vars: {values}}}]\n")
    assert build_plan(read_suite(None)).cases[0].prompt == '{"a":[1],"on":true} true 3 2 <b>aon 1!'


def test_a_missing_key_or_sdk_is_an_error_after_the_table_that_says_what_to_set(bakeoff: Bakeoff):
    text = "prompts: [Hello]\nproviders: [azure:chat:mine, 'cohere:command-r', openai:gpt-5]\n"
    Path("promptfooconfig.yaml").write_text(text)
    gone = dict.fromkeys(("AZURE_OPENAI_ENDPOINT", "CO_API_KEY", "OPENAI_API_KEY"), "")
    done = bakeoff("eval", "--check", **gone)
    assert done.returncode == 2
    assert "model azure:mine" in done.stdout
    for told in ("AZURE_OPENAI_ENDPOINT", "cohere:command-r", "set OPENAI_API_KEY"):
        assert told in done.stderr
