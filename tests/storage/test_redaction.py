"""Known secret values never reach the disk, and taking them out never breaks what is written."""

import base64
import json
import os
import re
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bakeoff.engine.registry import default_registry
from bakeoff.engine.run import run
from bakeoff.errors import PlanError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import Needs, ScoreInput, Task
from bakeoff.record import Failure, Phase, Record, Score, Step, Text, ToolCall, Transcript, Usage
from bakeoff.storage.journal import JournalWriter, read_journal
from bakeoff.storage.redaction import Redactor, known_secrets, secrets_in, secrets_within

from ..canaries.encodings import ENCODINGS

KEY = 'sk-Can4ry/"quoted"\\+&=é end'
FORMS: dict[str, Callable[[str], str]] = {
    "plain": lambda key: key,
    "JSON": lambda key: json.dumps(key, ensure_ascii=False)[1:-1],
    "JSON in ASCII": lambda key: json.dumps(key)[1:-1],
    "JSON in JSON": lambda key: json.dumps(json.dumps(key))[1:-1],
    "JSON in JSON in JSON": lambda key: json.dumps(json.dumps(json.dumps(key, ensure_ascii=False), ensure_ascii=False)),
    "URL": lambda key: quote(key, safe=""),
    "URL path": lambda key: quote(key),
    "URL query": lambda key: quote_plus(key),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64, one before": lambda key: base64.b64encode(b"u" + key.encode()).decode(),
    "base64, two before": lambda key: base64.b64encode(b"u:" + key.encode()).decode(),
    "base64, something after": lambda key: base64.b64encode(key.encode() + b"???").decode(),
    "base64 for URLs": lambda key: base64.urlsafe_b64encode(b"~~" + key.encode()).decode(),
    "base64 without padding": lambda key: base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
    "hex": lambda key: key.encode().hex(),
    "HEX": lambda key: key.encode().hex().upper(),
}


def core(form: str, key: str) -> str:
    """Return what of an encoded text says something of the key: at the seams, base64 mixes it with its neighbours."""
    text = FORMS[form](key)
    return text[4:-4] if "base64" in form else text


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_replaced_by_the_name(form: str) -> None:
    written = Redactor({"MY_KEY": KEY}).text(f"before {FORMS[form](KEY)} after")
    assert core(form, KEY) not in written
    assert "[redacted MY_KEY]" in written
    assert written.startswith("before ")
    assert written.endswith(" after")


def test_text_without_a_secret_is_left_as_it_is() -> None:
    redactor = Redactor({"A": "12345678"})
    clean = b"nothing 1234567 here \xff\xfe"
    assert redactor(clean) is clean
    assert not redactor.finds(clean)


def test_short_values_are_left_alone() -> None:
    assert Redactor({"A": "1234567"}).text("1234567") == "1234567"
    assert Redactor({"A": "12345678"}).text("12345678") == "[redacted A]"


def test_without_secrets_nothing_is_touched() -> None:
    assert Redactor({})(b"anything") == b"anything"
    assert Redactor({"A": ""}).text("") == ""


def test_a_name_is_made_safe_to_stand_anywhere() -> None:
    assert Redactor({'od"d\nname': "12345678"}).text("12345678") == "[redacted od_d_name]"


def test_one_secret_inside_another_leaves_nothing_of_the_longer() -> None:
    assert Redactor({"A": "password", "B": "password-and-more"}).text("password-and-more") == "[redacted B]"


LONG = "".join(f"{number:x}Zq" for number in range(1000, 1040))  # more than one line of base64
WRAPPED: dict[str, Callable[[str], str]] = {
    "base64 in lines": lambda key: base64.encodebytes(b"u:" + key.encode()).decode(),
    "base64 in lines of Windows": lambda key: base64.encodebytes(key.encode()).decode().replace("\n", "\r\n"),
    "base64 in indented lines": lambda key: base64.encodebytes(key.encode()).decode().replace("\n", "\n    "),
    "base64 in lines in JSON": lambda key: json.dumps(base64.encodebytes(key.encode()).decode()),
    "base64 in lines in JSON in JSON": lambda key: json.dumps(json.dumps(base64.encodebytes(key.encode()).decode())),
    "hex in lines": lambda key: "\n".join(textwrap.wrap(key.encode().hex(), 32)),
}


def leaked(written: str, said: str) -> set[str]:
    """Pieces of a secret's wording that can still be read; at the seams, base64 says less than a byte of it."""
    lines = [line for line in re.split(r"\s|\\+[rn]", said.strip('"\\')) if line]
    one = "".join(lines)[4:-4]
    return {one[at : at + 8] for at in range(len(one) - 8) if one[at : at + 8] in re.sub(r"\s|\\+[rn]", "", written)}


@pytest.mark.parametrize("form", WRAPPED)
def test_an_encoded_secret_is_found_across_lines(form: str, make_record: Callable[..., Record]) -> None:
    said = WRAPPED[form](LONG)
    output = f"before\n{said}\nafter"
    read, stored = write_and_read(make_record(transcript=Transcript(output=output)), {"K": LONG})
    written = str((read.transcript or Transcript()).output)
    assert leaked(written, said) == leaked(stored.decode(), said) == set()
    assert written.startswith("before\n")
    assert written.endswith("after")
    assert "[redacted K]" in written


@pytest.mark.parametrize("form", [*FORMS, *WRAPPED])
@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
@pytest.mark.parametrize(("beyond", "mark"), [("", ""), ("exit code 1: ", "…"), ("'", "...")])
def test_what_a_cut_left_of_a_secret_is_replaced(
    form: str, kept: float, beyond: str, mark: str, make_record: Callable[..., Record]
) -> None:
    said = (FORMS | WRAPPED)[form](LONG)
    size = int(len(said) * kept)
    end, start = said[-size:].strip('"\\'), said[:size].strip('"\\')
    texts = [f"{beyond}{mark}{end} and more", f"more and {start}{mark}{beyond}"]
    read, _ = write_and_read(make_record(transcript=Transcript(output=list(texts))), {"K": LONG})
    written = (read.transcript or Transcript()).output
    assert isinstance(written, list)
    assert leaked("\0".join(map(str, written)), said) == set()


def test_a_part_of_a_secret_elsewhere_is_a_word_like_any_other() -> None:
    redactor = Redactor({"K": "password-and-more"})
    assert redactor.text("the password", cut=False) == "the password"
    assert redactor.text("the password is wrong", cut=True) == "the password is wrong"
    assert redactor.text("the password", cut=True) == "the [redacted K]"


def test_the_names_in_a_record_are_never_taken_for_what_a_cut_left(make_record: Callable[..., Record]) -> None:
    record = make_record(case="reset-password", scores=(Score(name="has-password", value=1.0, reason="no password"),))
    read, _ = write_and_read(record, {"K": "password-and-more"})
    assert (read.case, [(score.name, score.reason) for score in read.scores]) == (
        "reset-password",
        [("has-password", "no [redacted K]")],
    )


def test_overlapping_secrets_leave_nothing_of_either() -> None:
    assert Redactor({"A": "abcdefgh", "B": "efghijklm"}).text("abcdefghijklm") == "[redacted B]"


def test_variables_are_secret_by_their_names() -> None:
    environment = {
        "OPENAI_API_KEY": "a",
        "apikey": "b",
        "GH_TOKEN": "c",
        "DB_PASSWORD": "d",
        "AWS_SECRET": "e",
        "PATH": "f",
        "EMPTY_TOKEN": "",
        "SSH_PRIVATE_KEY": "g",
    }
    assert set(secrets_in(environment).values()) == {"a", "b", "c", "d", "e", "g"}


@pytest.mark.parametrize(
    "name",
    [
        *("AZURE_OPENAI_KEY", "STRIPE_KEY", "AWS_ACCESS_KEY_ID", "GH_PAT", "DB_PASS", "NPM_AUTH", "KEY", "key_1"),
        *("PGPASSWORD", "MYSQL_PWD", "OPENAI_KEY2", "GPG_PASSPHRASE", "GOOGLE_APPLICATION_CREDENTIALS", "SIGNING_KEYS"),
    ],
)
def test_a_variable_whose_name_has_a_word_for_a_secret_is_secret(name: str) -> None:
    assert secrets_in({name: "value"}) == {name: "value"}


@pytest.mark.parametrize(
    "name",
    ["KEYBOARD_LAYOUT", "PATH", "PASSENGERS", "MONKEY", "AUTHOR", "GIT_AUTHOR_NAME", "PATTERN", "COMPASS", "PWD"],
)
def test_a_variable_whose_name_only_begins_like_such_a_word_is_not(name: str) -> None:
    assert secrets_in({name: "value"}) == {}


def write_and_read(record: Record, secrets: dict[str, str]) -> tuple[Record, bytes]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        with JournalWriter(path, Redactor(secrets)) as journal:
            journal.append_record(record)
        files = [path, *Path(folder, "blobs").rglob("*")]
        (entry,) = read_journal(path)
        assert isinstance(entry, Record), entry
        json.loads(path.read_bytes())
        return entry, b"\n".join(file.read_bytes() for file in files if file.is_file())


@pytest.mark.parametrize("before", ["\n", "\t", "\\", '"', "\u0001", "é", "\\\\", "a"])
@pytest.mark.parametrize("first", 'ntrbfu\\"/x')
def test_a_secret_after_an_escape_does_not_break_the_line(
    before: str, first: str, make_record: Callable[..., Record]
) -> None:
    """In the JSON text `\\npm_…` the `n` belongs to the newline, and not to the key."""
    secret = f"{first}pm_12345678"
    read, _ = write_and_read(make_record(transcript=Transcript(output=f"{before}{secret}")), {"K": secret})
    output = (read.transcript or Transcript()).output
    # Backslashes before it may be the rest of an escape.
    assert output in {f"{before}[redacted K]", *(f"{before[:kept]}[redacted K]" for kept in range(before.count("\\")))}


@pytest.mark.parametrize("after", ['"', "\n", "\\", "é", ""])
def test_a_secret_that_ends_in_a_backslash_does_not_break_the_line(
    after: str, make_record: Callable[..., Record]
) -> None:
    secret = "abcdefgh\\"
    record = make_record(transcript=Transcript(output=[f"abcdefgh{after}.", f"{secret}{after}"]))
    read, _ = write_and_read(record, {"K": secret})
    assert (read.transcript or Transcript()).output == [f"abcdefgh{after}.", f"[redacted K]{after}"] or after == "\\"


@pytest.mark.parametrize("secret", ["transcript", "attempt_key", "reasoning", '"record":', "00000000", "aaaaaaaaaaaa"])
def test_a_secret_that_is_a_word_of_the_format_does_not_break_the_line(
    secret: str, make_record: Callable[..., Record]
) -> None:
    step = Step(parts=(Text(text=secret), ToolCall(name="t", arguments={secret: secret})))
    record = make_record(started=100000000.0, transcript=Transcript(output=secret, steps=(step,)))
    read, _ = write_and_read(record, {"K": secret})
    assert (read.transcript or Transcript()).output == "[redacted K]"
    assert (read.started, read.verdict) == (100000000.0, record.verdict)


def test_a_number_that_is_a_secret_is_taken_out_of_free_data_alone(make_record: Callable[..., Record]) -> None:
    output = [12345678, 1.5, True, {"n": 912345678}]
    record = make_record(transcript=Transcript(output=output, usage=Usage(input=12345678)), started=12345678.0)
    read, _ = write_and_read(record, {"PIN": "12345678"})
    assert (read.transcript, read.started) == (
        Transcript(output=["[redacted PIN]", 1.5, True, {"n": "9[redacted PIN]"}], usage=Usage(input=12345678)),
        12345678.0,
    )
    bare, _ = write_and_read(make_record(transcript=Transcript(output=12345678)), {"PIN": "12345678"})
    assert (bare.transcript or Transcript()).output == "[redacted PIN]"


nasty = st.text(st.sampled_from('nuab"\\/ \n\té𝄞%+=&0'), min_size=8, max_size=16)
around = st.text(st.sampled_from('nu\\"\n a'), max_size=3)


@settings(deadline=None, max_examples=100)
@given(
    nasty, around, around, st.sampled_from(["plain", "JSON", "JSON in ASCII", "URL", "base64", "hex"]), st.booleans()
)
def test_lines_stay_readable_and_hold_no_form_of_a_nasty_secret(
    secret: str, before: str, after: str, form: str, long: bool
) -> None:
    assume(len(secret.strip()) >= 8)
    said = f"{before}{FORMS[form](secret)}{after}" + " padding" * (4000 if long else 0)
    record = Record(
        case="c",
        subject="s",
        round=0,
        attempt_key="k",
        score_key="k",
        started=0.0,
        threshold=1.0,
        attempt=Phase(seconds=1.0, failure=Failure(kind="infra", type="E", message=said, detail=said)),
        transcript=Transcript(output={said: [said]}, metadata={"m": said}),
        artefacts={said: said},
        refused={"x": said},
        scores=(Score(name="n", value=1.0, reason=said, metadata={"m": said}),),
    )
    read, stored = write_and_read(record, {"K": secret})
    assert (read.verdict, read.case) == (record.verdict, "c")
    held = stored.decode()
    for each in ("plain", "JSON", "JSON in ASCII", "URL", "hex"):
        assert FORMS[each](secret) not in held.replace("[redacted K]", "\0")
    assert core("base64", secret) not in held


# --- end to end ---------------------------------------------------------------------------------------------------

CANARY = 'sk-Canary/0123456789+quote"and\\slash'
SPOKEN = {name: FORMS[name] for name in ("plain", "JSON", "URL", "base64")}


def all_forms() -> str:
    return " | ".join(encode(CANARY) for encode in SPOKEN.values())


class Blabber:
    """Is given the key and says it in every way, everywhere a subject can."""

    needs = Needs(workspace=True)

    async def attempt(self, task: Task) -> Transcript:
        said = all_forms()
        if task.case_id == "breaks":
            raise RuntimeError(said)
        for number, encode in enumerate(SPOKEN.values()):
            name = encode(CANARY).replace("/", "_") if number != 2 else encode(CANARY)
            task.workspace.write({f"{number}-{name}.txt": said})
        task.workspace.write({'sk-Canary/0123456789+quote"and\\slash': said, "big.txt": said * 1000})
        call = ToolCall(name="t", arguments={"key": said}, result=[said], error=said)
        return Transcript(
            output={"said": said, "long": said * 1000, said: 1}, steps=(Step(parts=(Text(text=said), call)),)
        )


class Gossip:
    """A scorer that was given the key too."""

    name = "gossip"

    def __call__(self, given: ScoreInput) -> Score:
        if given.case.id == "scorer-breaks":
            raise RuntimeError(all_forms())
        return Score(name=self.name, value=1.0, reason=all_forms(), metadata={"k": all_forms() * 1000, all_forms(): 1})


async def test_a_key_that_a_subject_and_a_scorer_say_in_four_ways_is_in_no_file_of_the_run(
    tmp_path: Path, carry_out: Callable[..., Awaitable[list[Record]]]
) -> None:
    registry = default_registry().with_subject("blabber", lambda _: Blabber()).with_scorer("gossip", lambda _: Gossip())
    plan = Plan(
        name="canary",
        cases=tuple(Case(id=name, prompt="?", collect=("**",)) for name in ("speaks", "breaks", "scorer-breaks")),
        subjects=(SubjectSpec(kind="blabber", name="b"),),
        scorers=(ScorerSpec(kind="gossip"), ScorerSpec(kind="gossip", name="again")),
    )
    records = await carry_out(plan, registry=registry, secrets={"CANARY": CANARY}, retries=0)
    assert sorted(record.verdict for record in records) == ["grader", "infra", "pass"]
    assert all(json.dumps(CANARY)[1:-1] in record.model_dump_json() for record in records)
    files = [file for file in (tmp_path / "results").rglob("*") if file.is_file()]
    assert {"plan.json", "journal.jsonl"} < {file.name for file in files}
    for file in files:
        held = file.read_text()
        for name in SPOKEN:
            assert core(name, CANARY) not in held, (name, file)
            assert core(name, CANARY) not in str(file)
    (folder,) = (tmp_path / "results" / "runs").iterdir()
    stored = [entry for entry in read_journal(folder / "journal.jsonl") if isinstance(entry, Record)]
    assert sorted((record.case, record.verdict) for record in stored) == sorted((r.case, r.verdict) for r in records)
    spoken = next(record for record in stored if record.case == "speaks")
    assert len(spoken.artefacts) + len(spoken.refused) == 6
    assert "[redacted CANARY]" in str(sorted(spoken.artefacts))


async def test_a_plan_that_holds_a_secret_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    case = Case(id="c", prompt="make a form with a password field", expected="x")
    plan = Plan(
        name="p", cases=(case,), subjects=(SubjectSpec(kind="nop", name="n"),), scorers=(ScorerSpec(kind="exact"),)
    )
    options = RunOptions(results=tmp_path / "results", secrets={"DB_PASSWORD": "password", "OTHER": "12345678"})
    with pytest.raises(PlanError) as caught:
        await anext(aiter(run(plan, options)))
    assert caught.value.problems == (
        "plan 'p' contains the value of DB_PASSWORD, and no file of a run may contain a secret: "
        "take it out of the plan, or unset the variable if it is not a secret",
    )
    assert list(tmp_path.iterdir()) == []


def test_a_secret_that_is_a_word_of_the_format_is_not_found_in_every_plan() -> None:
    plan = Plan(name="p", cases=(Case(id="c", prompt="?"),), subjects=(), scorers=())
    assert Redactor({"A": "reference", "B": "threshold", "C": "attempt_seconds"}).names_in(plan) == []
    assert Redactor({"A": "prompt-9", "B": "key-of-b"}).names_in(plan.model_copy(update={"name": "a key-of-b"})) == [
        "B"
    ]


def test_the_options_know_the_secrets_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_TEST_TOKEN", "tok-12345678")
    redactor = RunOptions(secrets={"MINE": "mine-12345678"}).redactor()
    assert redactor.text("tok-12345678 mine-12345678") == "[redacted BAKEOFF_TEST_TOKEN] [redacted MINE]"
    assert "mine-12345678" not in repr(RunOptions(secrets={"MINE": "mine-12345678"}))
    assert os.environ["BAKEOFF_TEST_TOKEN"]


def test_a_model_is_redacted_without_touching_what_only_code_says() -> None:
    spec: Any = SubjectSpec(kind="scripted", name="n", options={"a": ["key-1234", {"key-1234": 1}], "n": None})
    plan = Plan(name="p", cases=(Case(id="c", prompt="key-1234"),), subjects=(spec,), scorers=())
    assert Redactor({"K": "key-1234"}).model(plan) == Plan(
        name="p",
        cases=(Case(id="c", prompt="[redacted K]"),),
        subjects=(
            SubjectSpec(kind="scripted", name="n", options={"a": ["[redacted K]", {"[redacted K]": 1}], "n": None}),
        ),
        scorers=(),
    )


def test_texts_whose_fields_say_that_they_are_secret_are_found_whole() -> None:
    data = {
        "tools": [{"authorization": "Bearer abc-123", "headers": {"X-Api-Key": "k-1"}}],
        "password": "correct horse",
        "key": "not this",
    }
    assert secrets_within(data) == {
        "tools.0.authorization": "abc-123",
        "tools.0.headers.X-Api-Key": "k-1",
        "password": "correct horse",
    }


# --- more encodings, names and sizes -------------------------------------------------------------------------------

LIKE_A_KEY = "sk-proj-Zq8Wv3Lp0Xn5Rt7Yb2Kd9Mf4"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_promised_encoding_is_replaced_in_a_text_and_in_json(encoding: str) -> None:
    said = ENCODINGS[encoding](LIKE_A_KEY)
    redactor = Redactor({"K": LIKE_A_KEY})
    written = redactor.text(f"before {said} after")
    assert written.startswith("before ")
    assert written.endswith(" after")
    assert "[redacted K]" in written
    assert said[4:-4] not in written
    assert redactor.finds(json.dumps({"said": said}).encode())
    assert redactor.finds(json.dumps({"said": json.dumps(said)}).encode())


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("DATABASE_URL", "postgres://u:p%40ss-w0rd-1@h/db", "p@ss-w0rd-1"),
        ("DATABASE_URL", "postgres://u:p%40ss-w0rd-1@h/db", "p%40ss-w0rd-1"),
        ("REDIS_URL", "redis://:Zq8Wv3Lp0Xn5@h:6379/0", "Zq8Wv3Lp0Xn5"),
        ("SENTRY_DSN", "https://0123456789abcdef@o1.ingest.example/1", "0123456789abcdef"),
        ("SLACK_WEBHOOK", "https://hooks.example/services/T00/B00/Zq8Wv3Lp0Xn5", "Zq8Wv3Lp0Xn5"),
        ("https_proxy", "http://me:Zq8Wv3Lp0Xn5@proxy:3128", "Zq8Wv3Lp0Xn5"),
        ("MY_JWT", "Zq8Wv3Lp0Xn5Rt7Yb2", "Zq8Wv3Lp0Xn5Rt7Yb2"),
        ("BEARER", "Zq8Wv3Lp0Xn5Rt7Yb2", "Zq8Wv3Lp0Xn5Rt7Yb2"),
        ("STRIPE_SK", "Zq8Wv3Lp0Xn5Rt7Yb2", "Zq8Wv3Lp0Xn5Rt7Yb2"),
        ("SIGNINGKEY", "Zq8Wv3Lp0Xn5Rt7Yb2", "Zq8Wv3Lp0Xn5Rt7Yb2"),
        ("ANYTHING", "ghp_Zq8Wv3Lp0Xn5Rt7Yb2Kd9", "ghp_Zq8Wv3Lp0Xn5Rt7Yb2Kd9"),
        ("ANYTHING", "AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
        ("AZURE_STORAGE", "AccountName=a;AccountKey=Zq8Wv3Lp0Xn5Rt==;", "Zq8Wv3Lp0Xn5Rt=="),
        ("GCP_JSON", json.dumps({"private_key_id": "Zq8Wv3Lp0Xn5Rt7"}), "Zq8Wv3Lp0Xn5Rt7"),
    ],
)
def test_a_value_that_holds_a_key_is_secret_and_so_is_the_key(name: str, value: str, secret: str) -> None:
    found = secrets_in({name: value})
    assert found[name] == value
    assert secret in found.values()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PWD", "/home/user/project-2024"),
        ("HTTPS_PROXY", "http://proxy.example:3128"),
        ("DATABASE_URL", "sqlite:///data/app.db"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-a/agent.123"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("AUTH_MODE", "production"),
        ("OAUTH_TOKEN_URL", "https://login.example/oauth/token"),
        ("SORTKEY", "created_at"),
        ("HOTKEY", "ctrl-shift-8"),
        ("XDG_SESSION_ID", "c2"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus"),
        ("KEYBOARD_LAYOUT", "us-intl-2024x"),
        ("SECRET_KEY_FILE", "run/secrets/key"),
        ("NODE_VERSION", "v20.11.1-alpine3"),
        ("GIT_COMMIT", "0123456789abcdef0123456789abcdef01234567"),
        ("API_TOKEN_REQUIRED", "required"),
    ],
)
def test_an_ordinary_value_is_not_secret(name: str, value: str) -> None:
    assert secrets_in({name: value}) == {}


def test_ordinary_words_are_not_taken_for_a_secret_made_of_words() -> None:
    redactor = Redactor({"K": "my-secret-token"})
    assert redactor.text("My secret token is not here") == "My secret token is not here"
    assert redactor.text("MY-SECRET-TOKEN m y s e c r e t t o k e n") == "[redacted K] [redacted K]"
    assert Redactor({"PIN": "12345678"}).text("1, 2, 3, 4, 5, 6, 7, 8") == "1, 2, 3, 4, 5, 6, 7, 8"


def test_env_files_above_are_read_up_to_the_top_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "outside" / "repository" / "package"
    here.mkdir(parents=True)
    (here.parent / ".git").mkdir()
    for folder, name in ((here, "HERE"), (here.parent, "ABOVE"), (here.parents[1], "OUTSIDE")):
        (folder / ".env").write_text(f"{name}_TOKEN={name.lower()}-Zq8Wv3Lp\nSETTING=from-{name}\n")
    monkeypatch.chdir(here)
    known = known_secrets({})
    assert set(known.values()) == {"here-Zq8Wv3Lp", "above-Zq8Wv3Lp"}


@pytest.mark.parametrize(
    "data",
    [
        b"\\" * 3_000_000,
        b"\\u00" * 1_000_000,
        b"\x1b[" * 1_000_000,
        b"skprojZq8" * 300_000,
        b". " * 1_000_000 + b"...",
    ],
    ids=["backslashes", "escapes", "colours", "starts of the key", "cuts"],
)
def test_hostile_data_is_searched_in_one_pass(data: bytes) -> None:
    """Quadratic time would take hours here."""
    written = Redactor({"K": LIKE_A_KEY})(data + LIKE_A_KEY.encode(), cut=True)
    assert LIKE_A_KEY.encode() not in written


def test_many_secrets_in_much_data_are_found_as_one_is() -> None:
    secrets = {f"K{number}": f"sk-{number:04}-Zq8Wv3Lp0Xn5Rt7Yb2{number:04}" for number in range(300)}
    text = "some text and numbers 12345 " * 40_000
    said = f"{text}{secrets['K7']}{text}{'-'.join(secrets['K299'])}{text}"
    assert Redactor(secrets).text(said) == f"{text}[redacted K7]{text}[redacted K299]{text}"
