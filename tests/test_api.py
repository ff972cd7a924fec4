"""What `import bakeoff` offers."""

import subprocess
import sys

import bakeoff


def test_every_public_name_is_there_and_is_not_a_module() -> None:
    found = {name: getattr(bakeoff, name) for name in bakeoff.__all__}
    assert [name for name, value in found.items() if type(value).__name__ == "module"] == []
    assert sorted(bakeoff.__all__) == dir(bakeoff)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(bakeoff, "no_such_name")


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, bakeoff; print([m for m in sys.modules if m.split('.')[0] in ('pydantic', 'rich', 'scipy')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
