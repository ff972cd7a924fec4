"""Whatever a journal holds, its page renders or is refused with a sentence, and nothing in it runs."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page
from pydantic import BaseModel

from bakeoff.errors import BakeoffError
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Failure, Phase, Reasoning, Record, Score, Step, Text, ToolCall, Transcript, Usage
from bakeoff.report.blocks import (
    BulletList,
    Code,
    Column,
    Datum,
    Difference,
    ForestPlot,
    Heading,
    Quote,
    Report,
    Section,
    Table,
    TextSpan,
)
from bakeoff.report.blocks import TextBlock as Paragraph
from bakeoff.report.compare.comparison import CompareRequest, compare_sources
from bakeoff.report.compare.description import describe_comparison
from bakeoff.report.gates import GateRule
from bakeoff.report.leaderboard import describe_leaderboard, rank_sources
from bakeoff.report.readers import open_source
from bakeoff.report.render.html.index_page import read_entries, write_index
from bakeoff.report.render.html.render import write_report_page
from bakeoff.report.render.html.run_page import write_run_page
from bakeoff.storage.redaction import with_texts
from bakeoff.storage.run_folder import RunFolder

from .browser import Chromium, opened
from .generator import line_of, plan_of, records_of, write_lines

pytestmark = pytest.mark.full

DEED = "window.__pwned=1;document.title='pwned'"
CANARY = (
    f'"\'><script>{DEED}</script></script></style></title></textarea><img src=x onerror="{DEED}">'
    f'<svg onload="{DEED}"><a href="javascript:{DEED}">x</a>{{{{7*7}}}}{{%print(7*7)%}}${{{DEED}}}<!--<script>'
)
ACTIVE = "#trial-body :is(img, script, iframe, [onload], [onerror], [href^='javascript'], svg:not(.timeline, .swatch))"
"""Tags that hostile text must not make. Elements of timelines are ours."""
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x00\x08\x9b31m \u202egnp.exe \u2028 \u2066 \x7f"


def rich(text: str, name: str | None = None) -> tuple[Plan, Record]:
    """A plan and a record with this text wherever text may be; names must be printable."""
    named = name or text
    plan = Plan(
        name=named,
        cases=(Case(id=named, prompt=text, files={"a.txt": text}, tags={text: text}), Case(id="other", prompt="")),
        subjects=(SubjectSpec(kind=named, name=named, options={text: text, "model": text}, revision=text),),
        scorers=(ScorerSpec(kind=named, name=named, options={text: text}),),
    )
    failure = Failure(kind="subject", type=text, message=text, detail=text)
    call = ToolCall(name=text, arguments={text: text}, result=[text], error=text, id=text)
    usage = Usage(requests=1, input=5, output=5, cost=0.5)
    step = Step(parts=(Text(text=text), Reasoning(text=text), call), usage=usage, finish_reason=text)
    trial = plan.trial(0)
    record = Record(
        case=named,
        subject=named,
        round=0,
        attempt_key=trial.attempt_key,
        score_key=trial.score_key,
        started=1.5,
        threshold=1.0,
        attempt=Phase(seconds=1, failure=failure),
        transcript=Transcript(output={text: text}, steps=(step,), metadata={text: text, "price": {text: text}}),
        artefacts={text: text, "x.patch": f"diff --git\n+{text}\n-{text}"},
        refused={text: text},
        workspace=text,
        scores=(Score(name=text, value=0.5, reason=text, metadata={text: text}, failure=failure),),
        spent=usage,
    )
    return plan, record


def marks(text: str) -> list[dict[str, Any]]:
    start = {"type": "start", "v": 1, "bakeoff": text, "time": text, "sandbox": text, text: [text]}
    return [start, {"type": "end", "v": 1, "reason": text, "time": 3}]


def poisoned(text: str, name: str | None = None) -> Callable[[Path], RunFolder]:
    def write(folder: Path) -> RunFolder:
        plan, record = rich(text, name)
        start, end = marks(text)
        return write_lines(folder, plan, [start, line_of(record), end])

    return write


def with_long_texts(folder: Path) -> RunFolder:
    """2 MB, twice what a page shows of a text, wherever a subject or a scorer can put them most easily."""
    plan, record = rich(CANARY)
    long = CANARY + "x" * 2_000_000
    failure = Failure(kind="subject", type="Error", message=long, detail=long)
    longer = record.model_copy(
        update={
            "transcript": Transcript(output=long, steps=(Step(parts=(Text(text=long),)),)),
            "artefacts": {"long.txt": long},
            "attempt": Phase(seconds=1, failure=failure),
        }
    )
    return write_lines(folder, plan, [line_of(longer)])


def with_lines(*lines: object) -> Callable[[Path], RunFolder]:
    """Good records, and among them these."""

    def write(folder: Path) -> RunFolder:
        plan = plan_of(2)
        good: list[object] = [line_of(record) for record in records_of(plan)]
        return write_lines(folder, plan, [*good[:4], *lines, *good[4:]])

    return write


def with_change(**change: Any) -> Callable[[Path], RunFolder]:
    """Every record changed in this way, which no code of ours would write."""

    def write(folder: Path) -> RunFolder:
        plan = plan_of(2)
        lines: list[Any] = [line_of(record) for record in records_of(plan)]
        for line in lines:
            line["record"].update(change)
        return write_lines(folder, plan, [json.dumps(line).encode() for line in lines])

    return write


def with_plan(plan: bytes) -> Callable[[Path], RunFolder]:
    return lambda folder: write_lines(folder, plan, [])


def with_blob(digest: str, content: bytes | None = None) -> Callable[[Path], RunFolder]:
    def write(folder: Path) -> RunFolder:
        plan = plan_of(2)
        line = line_of(next(records_of(plan)))
        run = write_lines(folder, plan, [{**line, "blobs": [[["transcript", "output"], digest]]}])
        if content is not None:
            blob = folder / "blobs" / digest[:2] / digest
            blob.parent.mkdir(parents=True)
            blob.write_bytes(content)
        return run

    return write


def torn(folder: Path) -> RunFolder:
    run = with_lines()(folder)
    data = run.journal_file.read_bytes()
    run.journal_file.write_bytes(data[: len(data) - 40])
    return run


def journal_is_a_folder(folder: Path) -> RunFolder:
    run = write_lines(folder, plan_of(2), [])
    run.journal_file.unlink()
    run.journal_file.mkdir()
    return run


def nested(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value


HOSTILE: dict[str, Callable[[Path], RunFolder]] = {
    "script tags in every field": poisoned(CANARY),
    "terminal escapes in every text": poisoned(ESCAPES, "escapes"),
    "names of what every object has": poisoned("__proto__"),
    "names that end data": poisoned("]]></script><!--DATA-->"),
    "texts of 2 MB": with_long_texts,
    "names of 300 kB": poisoned("y" * 300_000),
    "NaN": with_change(scores=[{"name": "s", "value": float("nan")}]),
    "infinity": with_change(attempt={"seconds": float("inf")}),
    "sums beyond all numbers": with_change(attempt={"seconds": 1.7e308}),
    "costs beyond all numbers": with_change(spent={"cost": 1.7e308}),
    "whole numbers of 4000 digits": with_change(spent={"input": 10**4000, "output": 10**4000}),
    "a time that no calendar has": with_change(started=1e300),
    "negative numbers": with_change(attempt={"seconds": -5.0}, tries=-3, spent={"input": -7, "cost": -1.0}),
    "nesting that can be read": with_change(transcript={"output": nested(120), "metadata": {"x": nested(90)}}),
    "nesting that cannot": with_lines(b"[" * 200_000, b'{"type":"record","v":1,"record":' + b"[" * 200_000),
    "wrong types": with_lines(1, None, [], "x", {}, {"type": "record", "v": 1, "record": 7}, {"type": 5, "v": {}}),
    "records of wrong types": with_change(scores="x", transcript=7, artefacts=[1]),
    "a torn last line": torn,
    "bytes that are no text": with_lines(b"\xff\xfe\x00\x01" * 1000, b'{"type":"record","v":1,"record":"\xff"}'),
    "half characters": with_lines(b'{"type":"record","v":1,"record":{"case":"\\ud800"}}'),
    "a version of the future": with_lines({"type": "record", "v": 99, "record": {}}),
    "marks that say anything": with_lines(*marks(CANARY), {"type": "start", "v": 1, "time": nested(50)}),
    "trials that are not in the plan": with_change(case="elsewhere", round=-1),
    "an empty journal": lambda folder: write_lines(folder, plan_of(2), []),
    "a journal that is a folder": journal_is_a_folder,
    "a plan that is no JSON": with_plan(CANARY.encode()),
    "a plan of wrong types": with_plan(b'{"name": 5, "cases": "x", "subjects": null}'),
    "a plan nested too deep": with_plan(b'{"name":"x","cases":' + b"[" * 100_000),
    "a blob outside the folder": with_blob("../../../../../../etc/passwd"),
    "a blob that is missing": with_blob("0" * 64),
    "a blob that is another": with_blob("1" * 64, b"not that"),
    "a blob that is no text": with_blob(hashlib.sha256(b"\xff\xfe").hexdigest(), b"\xff\xfe"),
}


SHOWN = [name for name in HOSTILE if name.startswith(("script tags", "terminal escapes", "names that", "texts of"))]
"""Whatever is hostile in these is text, which can always be shown."""


async def unharmed(page: Page) -> bool:
    title = await page.title()
    return await page.evaluate("window.__pwned === undefined") and title != "pwned"


def written_or_refused(write: Callable[[], Path]) -> Path | None:
    try:
        return write()
    except BakeoffError as error:
        sentence = str(error)
    assert re.fullmatch(r"[^\n\x1b]{20,1200}", sentence), sentence
    return None


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_journal_gives_harmless_pages_or_a_sentence(name: str, tmp_path: Path, chromium: Chromium) -> None:
    results = tmp_path / "results"
    run = HOSTILE[name](results / "runs" / "run")
    other = write_lines(tmp_path / "other", plan_of(2), [line_of(record) for record in records_of(plan_of(2))])

    def compared(first: RunFolder, second: RunFolder) -> Path:
        baseline, candidate = open_source(first.path), open_source(second.path)
        subjects = (baseline.plan.subjects[0].name, candidate.plan.subjects[-1].name)
        report = describe_comparison(
            compare_sources(
                baseline, candidate, CompareRequest(subjects=subjects, rule=GateRule("verdict", margin=0.1))
            )
        )
        return write_report_page(tmp_path / f"compared with {second.name}.html", report)

    def ranked() -> Path:
        sources = [open_source(run.path), open_source(other.path)]
        return write_report_page(tmp_path / "board.html", describe_leaderboard(rank_sources(sources)))

    index = write_index(tmp_path / "index.html", read_entries(results))
    trials = written_or_refused(lambda: write_run_page(run, tmp_path / "run.html"))
    written = [
        written_or_refused(make) for make in (lambda: compared(run, other), lambda: compared(other, run), ranked)
    ]
    made = [page for page in written if page]

    async def look(page: Page) -> bool:
        await opened(page, index)
        fine = await unharmed(page)
        for button in await page.locator("#history-table button").all():
            await button.click()
        if trials is not None:
            await opened(page, trials, "#t=0")
            await page.locator("#trial-body h3").first.wait_for()
            await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            await page.wait_for_timeout(50)
            fine = fine and await unharmed(page) and await page.locator(ACTIVE).count() == 0
        for path in made:
            await opened(page, path)
            await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            await page.evaluate("document.querySelectorAll('main a[href^=\"#\"]').forEach((one) => one.click())")
            fine = fine and await unharmed(page) and await page.locator("main :is(img, script, [onload])").count() == 0
        return fine

    assert chromium(look)
    if name in SHOWN:
        assert trials is not None
        assert len(made) == 3, "texts are no reason to refuse"


def test_a_door_that_says_anything_in_sections_harms_no_page(tmp_path: Path, chromium: Chromium) -> None:
    cell = Datum(text=CANARY, note=CANARY, trail=(0.1, 0.2), span=TextSpan(value=0.5))
    columns = (Column(title=CANARY, help=CANARY), Column(title="b"))
    blocks = (
        Table(columns=columns, rows=((cell, CANARY),), caption=CANARY),
        Table(columns=columns, rows=((cell, CANARY),) * 600, caption=CANARY),
        Code(text=f"+{CANARY}\n-{CANARY}\n@@ {CANARY}", language="diff", title=CANARY),
        ForestPlot(CANARY, (Difference(CANARY, 0.1, (0.0, 0.2), verdict=CANARY),), caption=CANARY),
        Paragraph((CANARY, Quote(CANARY))),
        BulletList((CANARY, (Quote(CANARY), CANARY))),
        Section("inner", CANARY, (Heading(Quote(CANARY)),), lead=CANARY),
    )
    sections = (Section(id="x", title=Quote(CANARY), blocks=blocks, lead=CANARY),)
    report = Report(CANARY, sections, CANARY, "fail", CANARY, ((CANARY, CANARY, CANARY),))
    path = write_report_page(tmp_path / "page.html", report)

    async def look(page: Page) -> tuple[bool, int]:
        await opened(page, path)
        return await unharmed(page), await page.locator("main :is(img, script, [onload])").count()

    assert chromium(look) == (True, 0)


def decoded(page: Path) -> str:
    """Return everything a page holds, its chunks unpacked."""
    html = page.read_text("utf-8")
    blocks = re.findall(r'data-chunk="[^"]+">([^<]+)<', html)
    return html + "".join(gzip.decompress(base64.b64decode(block)).decode() for block in blocks)


def test_control_characters_are_shown_and_not_emitted(tmp_path: Path) -> None:
    text = decoded(write_run_page(HOSTILE["terminal escapes in every text"](tmp_path / "run")))
    assert re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text) == []
    assert "␛[2J" in text
    assert "\\\\u202egnp.exe" in text  # a backslash, in JSON


def test_nothing_of_one_run_reaches_the_page_of_another(tmp_path: Path) -> None:
    def secret(text: str) -> RunFolder:
        plan, record = rich("plain")
        record = with_texts(record, lambda old: old)
        whispered = record.model_copy(update={"transcript": Transcript(output=text), "workspace": str(tmp_path)})
        return write_lines(tmp_path / "runs" / text, plan, [line_of(whispered)])

    mine, other = secret("only-in-mine"), secret("only-in-other")
    (tmp_path / "outside").write_text("outside-the-folder")
    outside = with_blob("../../../outside")(tmp_path / "runs" / "third")
    pages = {run: decoded(write_run_page(run)) for run in (mine, other, outside)}
    assert "only-in-mine" in pages[mine]
    assert "only-in-mine" not in pages[other] + pages[outside]
    assert "outside-the-folder" not in pages[outside]


def test_hidden_files_and_references_stay_out_of_the_page(tmp_path: Path) -> None:
    plan = plan_of(2)
    cases = tuple(
        case.model_copy(update={"hidden": {"check.py": "hidden-text"}, "reference": {"a": "reference-text"}})
        for case in plan.cases
    )
    text = decoded(write_run_page(write_lines(tmp_path / "run", plan.model_copy(update={"cases": cases}), [])))
    assert "check.py" in text
    assert "hidden-text" not in text
    assert "reference-text" not in text


def test_the_canary_would_be_seen(chromium: Chromium, tmp_path: Path) -> None:
    """A page without our care, to know that the tests above can fail."""
    careless = tmp_path / "careless.html"
    careless.write_text(f"<!DOCTYPE html><title>x</title><body>{CANARY}")

    async def look(page: Page) -> bool:
        await page.goto(careless.as_uri())
        return await unharmed(page)

    assert not chromium(look)


def test_every_text_field_of_a_record_is_poisoned() -> None:
    """So that a field that is added later is tried too."""
    _, record = rich(CANARY)

    def empty(model: BaseModel) -> list[str]:
        found = []
        for name, field in type(model).model_fields.items():
            value = getattr(model, name)
            if value in (None, "", (), {}) and field.annotation is not None and "str" in str(field.annotation):
                found.append(f"{type(model).__name__}.{name}")
        return found

    assert empty(record) == []
