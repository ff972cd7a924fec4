"""The suites that travel with the package."""

from collections.abc import Callable

import pytest

from ...warm_bakeoff import Bakeoff

pytestmark = pytest.mark.full

# Effects, runes in the test, other frameworks; a Python one. `bakeoff verify` alone takes all of them.
SUITES = ("profile-loader", "locale-price", "python-intervals", "react-breadcrumbs", "vue-pager", "typescript-slugs")


def test_bundled_suites_of_every_kind_are_fit_for_use(bakeoff: Bakeoff, needs_program: Callable[[str], str]) -> None:
    needs_program("node")
    named = [word for name in SUITES for word in ("--suite", name)]
    done = bakeoff("verify", *named)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(SUITES)} of {len(SUITES)} suites are fit for use" in done.stdout
