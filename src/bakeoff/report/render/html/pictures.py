"""Put the pictures of a run's components into its page, each once, as data that no browser takes for markup."""

import base64
from typing import IO, Any

from bakeoff._kernel.text import visible
from bakeoff.plan import Case
from bakeoff.record import Record
from bakeoff.report.render.html.detail import handed_in
from bakeoff.report.render.html.render import ChunkWriter
from bakeoff.storage.pictures import Pictures, picture_key
from bakeoff.storage.run_folder import RunFolder

NO_PICTURE, NO_ANSWER = -1, -2
_MAX_BYTES = 40_000_000  # of all pictures of a page
_TOO_MANY = "the pictures of this run are too large for one page; they are in its folder `pictures`"


class PagePictures:
    """The pictures that a page shows, while its records stream by."""

    def __init__(self, folder: RunFolder | None) -> None:
        self._pictures = Pictures.of(folder) if folder is not None and folder.pictures.is_dir() else None
        self._numbers: dict[str, int] = {}

    def find(self, record: Record, case: Case) -> int:
        """Return the number of the picture of a trial; `NO_PICTURE` if none was tried, `NO_ANSWER` of nothing."""
        if self._pictures is None or case.grading is None:
            return NO_PICTURE
        text = handed_in(record, case).get(case.grading.solution[0])
        if text is None:
            return NO_ANSWER
        if not self._pictures.has(key := picture_key(case, text)):
            return NO_PICTURE
        return self._numbers.setdefault(key, len(self._numbers))

    def write(self, data: IO[bytes]) -> dict[str, Any]:
        """Write all that were found, and return where in the page each is. Memory holds one chunk."""
        chunks, places, room = ChunkWriter(data, "pictures"), [], _MAX_BYTES
        for key in self._numbers:
            found = self._pictures.read(key) if self._pictures else None
            room -= len(found.png) if found else 0
            if found is None or room < 0:
                places.append(chunks.add({"problem": _TOO_MANY if found else "the picture is gone"}))
            elif found.problem:
                places.append(chunks.add({"problem": visible(found.problem, 500)}))
            else:
                places.append(chunks.add({"png": base64.b64encode(found.png).decode()}))
        chunks.close()
        return {"pictures": places}
