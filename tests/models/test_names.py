"""Test how models are named, who serves them, and what is said before anything runs when one cannot be asked."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bakeoff.errors import PlanError, UsageError
from bakeoff.models.access import what_is_missing
from bakeoff.models.providers import (
    BUILT_IN,
    ModelName,
    ProviderSettings,
    known_model_name,
    known_providers,
    parse_model_name,
    register_provider,
)
from bakeoff.plan import SubjectSpec
from bakeoff.record import Record

from .loopback import KEY, Loopback, plan_of

CarryOut = Callable[..., Awaitable[list[Record]]]


@pytest.mark.parametrize(
    ("text", "provider", "model"),
    [
        ("openai:gpt-4o", "openai", "gpt-4o"),
        ("OpenAI:gpt-4o", "openai", "gpt-4o"),
        (" openai : gpt-4o ", "openai", "gpt-4o"),
        ("ollama:qwen3:0.6b", "ollama", "qwen3:0.6b"),
        ("openrouter:deepseek/deepseek-r1:free", "openrouter", "deepseek/deepseek-r1:free"),
        ("anthropic/claude-sonnet-4", "gateway", "anthropic/claude-sonnet-4"),
        ("openai/gpt-oss:free", "gateway", "openai/gpt-oss:free"),
        ("gateway:anthropic/claude-sonnet-4", "gateway", "anthropic/claude-sonnet-4"),
        ("gateway:odd", "gateway", "odd"),
        ("local:smollm2", "local", "smollm2"),
        ("local:/weights/a b.gguf", "local", "/weights/a b.gguf"),
        ("local:./weights.gguf", "local", "./weights.gguf"),
        ("scripted:Yes: it is.", "scripted", "Yes: it is."),
    ],
)
def test_a_name_is_a_provider_and_a_model(text: str, provider: str, model: str) -> None:
    name = parse_model_name(text)
    assert name == ModelName(provider, model)
    assert parse_model_name(str(name)) == name


@pytest.mark.parametrize(
    "text", ["", " ", "gpt-4o", ":gpt-4o", "openai:", "openai: ", "/x", "x/", "/", ":", "a/:b", "a/b:"]
)
def test_what_names_no_model_is_refused_with_both_ways_to_write_one(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a model name: write `provider:model`.*`maker/model`"):
        parse_model_name(text)


def test_all_promised_providers_are_built_in() -> None:
    promised = "gateway openai anthropic google gemini deepseek openrouter groq mistral xai ollama lmstudio vllm"
    assert {*promised.split(), "openai-compatible", "local", "scripted"} <= set(BUILT_IN)


def problem_of(text: str, environment: dict[str, str]) -> str | None:
    providers = known_providers()
    try:
        name = known_model_name(text, providers)
    except UsageError as error:
        return str(error)
    missing = what_is_missing(name, providers[name.provider], environment)
    return missing[0] if missing else None


def test_everything_that_keeps_a_model_from_being_called_is_said(nobody: None) -> None:
    names = ["opnai:gpt-4o", "openai:gpt-4o", "nonsense", "openai-compatible:x", "anthropic:y", "gemini:z", "qqq:x"]
    names.append("vllm:x")
    environment = {"OPENAI_COMPATIBLE_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "VLLM_BASE_URL": "localhost:8000"}
    said = [problem for name in names if (problem := problem_of(name, environment))]
    assert len(said) == 7
    assert said[6] == "model 'vllm:x': its address 'localhost:8000' does not begin with http:// or https://"
    assert said[0] == "model 'opnai:gpt-4o': unknown provider 'opnai'; did you mean openai:gpt-4o?"
    assert said[1] == ("model 'openai:gpt-4o': no key: set OPENAI_API_KEY in the environment, in .env or in .env.local")
    assert "'nonsense' is not a model name" in said[2]
    assert said[3] == "model 'openai-compatible:x': no address: set OPENAI_COMPATIBLE_BASE_URL"
    assert "set GEMINI_API_KEY or GOOGLE_API_KEY" in said[4]
    assert "unknown provider 'qqq'; there are " in said[5]


async def test_a_plan_with_models_that_cannot_be_asked_runs_nothing(
    provider: Loopback, carry_out: CarryOut, model_spec: Callable[..., SubjectSpec], tmp_path: Path
) -> None:
    subjects = [
        model_spec("fine"),
        SubjectSpec(kind="model", name="a", options={"model": "opnai:gpt-4o"}),
        SubjectSpec(kind="agent", name="b", options={"model": "anthropic:x"}),
        SubjectSpec(kind="model", name="c", options={"model": "openai:x", "temperature": "warm"}),
        SubjectSpec(kind="modle", name="d", options={}),
    ]
    with pytest.raises(PlanError) as caught:
        await carry_out(plan_of(*subjects))
    assert len(caught.value.problems) == 4
    said = "\n".join(caught.value.problems)
    for word in ("did you mean openai:gpt-4o?", "subject 'b' (agent)", "ANTHROPIC_API_KEY", "temperature", "'model'?"):
        assert word in said
    assert provider.received == []
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"OPENAI_API_KEY": "sk-one\nsk-two"}, "the key in OPENAI_API_KEY contains a line break"),
        (
            {"OPENAI_API_KEY": "sk-schlüssel"},
            "the key in OPENAI_API_KEY contains a line break or a character outside ASCII",
        ),
        ({"OPENAI_BASE_URL": "http://[::1"}, "its address 'http://\\[::1' cannot be read"),
        ({"OPENAI_BASE_URL": "http://host:port/v1"}, "cannot be read"),
        ({"OPENAI_BASE_URL": "http://:80/v1"}, "names no host"),
        ({"HTTPS_PROXY": "gopher://proxy:1"}, "the proxy or certificate settings of the environment cannot be used"),
        ({"HTTP_PROXY": "http://[::1"}, "the proxy or certificate settings"),
        ({"SSL_CERT_FILE": "/nobody/here.pem"}, "the proxy or certificate settings"),
    ],
    ids=str,
)
async def test_what_no_request_could_be_made_with_is_said_before_anything_runs(
    nobody: None,
    carry_out: CarryOut,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    says: str,
) -> None:
    for name, value in {"OPENAI_API_KEY": "sk-plain-and-simple", **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(PlanError, match=says) as caught:
        await carry_out(plan_of(SubjectSpec(kind="model", name="m", options={"model": "openai:gpt-4o"})))
    assert "sk-" not in str(caught.value)
    assert not (tmp_path / "results").exists()


async def test_a_model_that_the_gateway_has_not_got_is_said_with_near_names(
    provider: Loopback, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AI_GATEWAY_API_KEY", KEY)
    monkeypatch.setenv("AI_GATEWAY_BASE_URL", f"{provider.url}/v1")
    wrong = [SubjectSpec(kind="model", name=name, options={"model": f"openai/{name}"}) for name in ("gpt5", "qqqqqq")]
    with pytest.raises(PlanError) as caught:
        await carry_out(plan_of(*wrong))
    assert "the gateway has no such model; did you mean openai/gpt-5?" in caught.value.problems[0]
    assert len(caught.value.problems) == 2
    assert {request.path for request in provider.received} == {"/v1/models"}
    assert all("authorization" not in request.headers for request in provider.received)


async def test_without_the_gateways_list_nobody_is_accused(
    provider: Loopback, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERCEL_OIDC_TOKEN", KEY)
    monkeypatch.setenv("AI_GATEWAY_BASE_URL", f"{provider.url}/v1")
    provider.stop()
    spec = SubjectSpec(kind="model", name="m", options={"model": "openai/gpt5", "patience_seconds": 0.01})
    [record] = await carry_out(plan_of(spec), retries=0)
    assert record.verdict == "infra"


class Shout:
    def __init__(self, settings: ProviderSettings) -> None:
        self.model = settings.model

    def create_message(self, system: str, message: str) -> str:
        return f"{self.model}|{system}|{message}".upper()


async def output_of(carry_out: CarryOut, **options: object) -> object:
    spec = SubjectSpec(kind="model", name="m", options={"system": "sys", **options})
    [record] = await carry_out(plan_of(spec), retries=0)
    assert record.transcript is not None, record.failure
    return record.transcript.output


async def test_a_registered_provider_is_asked_until_it_is_taken_back(nobody: None, carry_out: CarryOut) -> None:
    take_back = register_provider("Shouting", Shout)
    try:
        assert await output_of(carry_out, model="shouting:a") == "A|SYS|QUESTION 0"
    finally:
        take_back()
    assert "shouting" not in known_providers()
    with pytest.raises(PlanError, match="unknown provider 'shouting'"):
        await output_of(carry_out, model="shouting:a")


def test_taking_back_brings_back_what_was_hidden() -> None:
    first = register_provider("twice", Shout)
    second = register_provider("twice", Shout)
    hidden = known_providers()["twice"]
    first()  # no longer there to be taken back
    assert known_providers()["twice"] is hidden
    second()
    first()
    assert "twice" not in known_providers()


@pytest.mark.parametrize("name", ["", "a:b", "a/b"])
def test_a_provider_cannot_have_a_name_that_no_model_could_be_named_with(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a provider"):
        register_provider(name, Shout)


async def test_a_config_may_name_a_class_as_provider(
    nobody: None, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("my_provider.py").write_text(
        "class Echo:\n    def __init__(self, settings): pass\n"
        "    async def create_message(self, system, message): return message\n"
    )
    monkeypatch.syspath_prepend(str(Path.cwd()))
    mine = {"Mine": {"target": "my_provider:Echo"}}
    assert await output_of(carry_out, model="mine:x", providers=mine) == "question 0"
    with pytest.raises(PlanError, match="has no 'Nobody'"):
        await output_of(carry_out, model="mine:x", providers={"mine": {"target": "my_provider:Nobody"}})
    with pytest.raises(PlanError, match="needs a base_url or a target"):
        await output_of(carry_out, model="mine:x", providers={"mine": {}})


PROVIDERS = """
class Echo:
    def create_message(self, system, message): return "echo " + message

class Told:
    def __init__(self, settings): self.settings = settings
    def create_message(self, system, message):
        told = self.settings
        return f"{told.model} {told.base_url} {told.api_key[:5]} {told.options}"

def make(settings): return Told(settings)

class Greedy:
    def __init__(self, one, two): pass

ready = Echo()
nothing = 5
"""


@pytest.fixture
def their_providers(nobody: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that a config may name, and the key that it is given."""
    Path("their_providers.py").write_text(PROVIDERS)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    monkeypatch.delitem(sys.modules, "their_providers", raising=False)
    monkeypatch.setenv("MY_KEY", "12345-and-the-rest")


async def test_a_provider_is_told_all_that_the_config_says_whatever_its_target_is(
    their_providers: None, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def say(target: str) -> object:
        mine = {"base_url": "unix:/run/mine", "key_variable": "MY_KEY", "options": {"depth": 3}}
        given = {"mine": {**mine, "target": f"their_providers:{target}"}}
        return await output_of(carry_out, model="mine:x", providers=given)

    told = "x unix:/run/mine 12345 {'depth': 3}"
    assert [await say(target) for target in ("Told", "make")] == [told, told]
    assert [await say(target) for target in ("Echo", "ready")] == ["echo question 0"] * 2
    for target in ("nothing", "Greedy"):
        with pytest.raises(PlanError, match=r"create_message|cannot be called"):
            await say(target)
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(PlanError, match="no key: set MY_KEY"):
        await say("Told")


async def test_subjects_may_give_one_provider_different_options(their_providers: None, carry_out: CarryOut) -> None:
    def spec(depth: int) -> SubjectSpec:
        mine = {"target": "their_providers:Told", "key_variable": "MY_KEY", "options": {"depth": depth}}
        return SubjectSpec(kind="model", name=f"m{depth}", options={"model": "mine:x", "providers": {"mine": mine}})

    records = await carry_out(plan_of(spec(1), spec(2)), retries=0)
    said = {record.subject: str(record.transcript.output)[-12:] for record in records if record.transcript}
    assert said == {"m1": "{'depth': 1}", "m2": "{'depth': 2}"}


@pytest.mark.full
async def test_an_installed_package_may_bring_a_provider(nobody: None, tmp_path: Path) -> None:
    import asyncio

    site = tmp_path / "site"
    info = site / "shouting-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bakeoff.providers]\nShout = shouting:make\nbroken = shouting:nobody\n")
    (site / "shouting.py").write_text(
        "class Shout:\n    def create_message(self, system, message): return message.upper()\n"
        "def make(settings): return Shout()\n"
    )
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio\n"
        "from bakeoff.options import RunOptions\n"
        "from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec\n"
        "from bakeoff.engine.run import run\n"
        "async def main():\n"
        "    for model in ('shout:x', 'broken:x'):\n"
        "        spec = SubjectSpec(kind='model', name='m', options={'model': model})\n"
        "        plan = Plan(name='p', cases=(Case(id='c', prompt='hello', expected='HELLO'),), subjects=(spec,),\n"
        "                    scorers=(ScorerSpec(kind='exact'),))\n"
        "        async for record in run(plan, RunOptions(retries=0)):\n"
        "            print(record.transcript.output if record.transcript else record.failure.message)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, program, env={"PYTHONPATH": str(site), "PATH": ""}, stdout=-1, stderr=-1
    )
    out, err = await process.communicate()
    first, second = out.decode().splitlines()
    assert first == "HELLO", err.decode()
    assert second.startswith("provider 'broken': 'shouting:nobody' cannot be imported")


@pytest.mark.parametrize(
    "given", ["https://mine.example", "https://mine.example/", "https://mine.example/v1", "https://mine.example/v1/"]
)
def test_the_address_of_the_gateway_is_taken_with_and_without_its_version(given: str) -> None:
    assert BUILT_IN["gateway"].url({"AI_GATEWAY_BASE_URL": given}) == "https://mine.example/v1"
    assert BUILT_IN["gateway"].url({}) == "https://ai-gateway.vercel.sh/v1"
