"""Take a picture of each component of a run. Nothing is graded again, and no record changes."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bakeoff._kernel.text import count_of
from bakeoff.errors import InfraError
from bakeoff.grading.cases import GradedCase, graded_case
from bakeoff.plan import Framework, Plan
from bakeoff.protocols import Sandbox
from bakeoff.storage.pictures import Picture, Pictures, picture_key
from bakeoff.storage.run_folder import RunFolder
from bakeoff.toolchains.vitest import framework_of

MAX_PICTURES = 500
"""The largest number of pictures of one run; each picture starts a browser."""


@dataclass(frozen=True, slots=True)
class _PendingPicture:
    """A component whose picture is still missing."""

    key: str
    case: GradedCase
    answer: Mapping[str, str]


def take_pictures(
    folder: RunFolder,
    plan: Plan,
    sandbox: Callable[[], Sandbox],
    say: Callable[[str], None],
    *,
    again: bool = False,
) -> int:
    """Take the missing pictures of a run. With `again`, also retry components whose pictures failed before.

    Return how many components now have a picture or a recorded problem. If this machine cannot take
    pictures, report that and go on: a run without pictures is complete.
    """
    pictures = Pictures.of(folder)
    wanted = {each.key: each for each in _pending(folder, plan)}
    is_done = pictures.shows if again else pictures.has
    missing = [each for each in wanted.values() if not is_done(each.key)]
    if len(missing) > MAX_PICTURES:
        say(f"{len(missing):,} components have no picture: those of the first {MAX_PICTURES} are taken")
    try:
        asyncio.run(_take(pictures, missing[:MAX_PICTURES], sandbox, say))
    except InfraError as error:
        say(f"no pictures were taken: {error}")
    return sum(pictures.has(key) for key in wanted)


def _pending(folder: RunFolder, plan: Plan) -> Iterator[_PendingPicture]:
    from bakeoff.report.render.html.detail import handed_in

    cases = {case.id: case for case in plan.cases if case.grading and case.grading.runner == "vitest"}
    for record in folder.latest_records(plan):
        if (case := cases.get(record.case)) is None:
            continue
        graded = graded_case(case)
        if _framework_of(graded) == "typescript":
            continue  # it has nothing to render
        answer = handed_in(record, case)
        if (text := answer.get(graded.settings.solution[0])) is not None:
            yield _PendingPicture(picture_key(case, text), graded, answer)


def _framework_of(case: GradedCase) -> Framework:
    return case.settings.framework or framework_of(case.settings.solution[0])


async def _take(
    pictures: Pictures, missing: list[_PendingPicture], sandbox: Callable[[], Sandbox], say: Callable[[str], None]
) -> None:
    if not missing:
        return
    from bakeoff.toolchains.vitest import PictureToolchain

    toolchain = await PictureToolchain.ready(sandbox(), say)
    say(f"taking {count_of(len(missing), 'picture')} …")
    slots = asyncio.Semaphore(max(1, (os.cpu_count() or 2) // 2))  # a browser keeps two cores busy

    async def take(each: _PendingPicture) -> None:
        settings, props = each.case.settings, each.case.case.picture
        files = {**each.case.with_answer(each.answer), **props}
        async with slots:
            try:
                taken = await toolchain.take(
                    files, settings.solution[0], _framework_of(each.case), next(iter(props), None)
                )
            except OSError as error:
                taken = Picture(problem=str(error))
        await asyncio.to_thread(pictures.write, each.key, taken)

    async with asyncio.TaskGroup() as group:
        for each in missing:
            group.create_task(take(each))
