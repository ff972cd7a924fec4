"""Solutions in Python that attack the tests. Each is run in the process of pytest, when the tests import it."""

from bakeoff.grading.attacks.catalogue import HostileSolution
from bakeoff.grading.attacks.python.patches import PATCHES
from bakeoff.grading.attacks.python.processes import GUESSES, PROCESS
from bakeoff.grading.attacks.python.reports import REPORTS
from bakeoff.grading.attacks.python.searches import SEARCHES, STATE
from bakeoff.grading.attacks.python.values import VALUES

PYTHON: tuple[HostileSolution, ...] = (
    *(*PATCHES, *REPORTS, *VALUES, *PROCESS),
    *(*GUESSES, *SEARCHES, *STATE),
)
