"""Write the outputs below the commands of a page anew: `python -m scripts.docs_outputs docs/tutorial/mcp.md`.

All console blocks of a page with `<!-- one folder -->` run in one folder, those of other pages in one each, with an
empty HOME. A command that has no output on the page gets none.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.project.test_docs_examples import FENCE, NOT_RUN, ONE_FOLDER, is_make
from tests.warm_bakeoff import of_no_person

from bakeoff._kernel.environment import cache_folder

# Lines that come as often as the machine is slow.
PROGRESS = re.compile(r"^\d+/\d+ trials?, ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    for page in parser.parse_args().pages:
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(with_outputs(page.read_text("utf-8"), Path(folder)), "utf-8")
        print(f"✓ {page}")


def with_outputs(markdown: str, folder: Path) -> str:
    """Return a page with what its commands print now, run in a folder `here` of the given one."""
    together, number, language = ONE_FOLDER in markdown, 0, ""
    written, block = list[str](), list[str]()
    for line in markdown.splitlines():
        fence = FENCE.match(line)
        if fence and not language:
            language, block = (fence["info"].split() or ["text"])[0], []
            language = "text" if written and NOT_RUN in written[-1] else language
            written.append(line)
        elif fence and line.strip() == "```":
            number += 1
            here = folder / ("" if together else str(number)) / "here"
            written += [*_run(block, language, here), line]
            language = ""
        else:
            (block if language else written).append(line)
    return "\n".join(written) + "\n"


def _run(block: list[str], language: str, folder: Path) -> list[str]:
    """Run a block, and return its lines with new outputs."""
    folder.mkdir(parents=True, exist_ok=True)
    if language in ("bash", "python"):
        output_of("\n".join(block), folder, language)
    if language != "console":
        return block
    lines = list[str]()
    commands = re.split(r"^(?=\$ )", "\n".join(block), flags=re.MULTILINE)
    for command in filter(None, commands):
        typed = re.match(r"\$ .*(?:\n>(?: .*)?(?=\n|$))*", command)
        assert typed, command
        line = re.sub(r"^(\$ |> ?)", "", typed[0], flags=re.MULTILINE)
        output = [] if is_make(line) else output_of(line, folder, "bash")
        lines += typed[0].splitlines()
        if command[typed.end() :].strip():
            lines += output
    return lines


def output_of(text: str, folder: Path, language: str) -> list[str]:
    """Run a script as a new user would, and return the lines that it prints."""
    home = folder.with_name("home")
    home.mkdir(exist_ok=True)
    environment = {**of_no_person(), "HOME": str(home), "BAKEOFF_CACHE": str(cache_folder())}
    environment["PYTEST_ADDOPTS"] += " -p no:asyncio"  # users have it if they want it, and then set it up
    program = ["bash", "-c", text] if language == "bash" else [sys.executable, "-c", text]
    done = subprocess.run(
        program,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    lines = [line.rstrip() for line in done.stdout.splitlines() if not PROGRESS.match(line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines).strip("\n")).splitlines()


if __name__ == "__main__":
    main()
