"""`make check` type-checks the examples of evals in the docs: they are found, with the line of their errors."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = """\
# A page

```python
first = 1
```

<!-- exit: 1 -->
```console
$ cat > test_it.py <<'EOF'
> second = 2
> EOF
$ pytest
third = 3
```

```bash
cat > test_it.py <<'EOF'
fourth = 4
EOF
```
"""


def test_python_blocks_and_written_files_are_examples_and_output_is_not(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("check_examples", ROOT / "scripts" / "check_examples.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert list(script.examples_of(page)) == [(3, ["first = 1"]), (9, ["second = 2"]), (17, ["fourth = 4"])]
