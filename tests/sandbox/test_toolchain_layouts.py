"""Python and Node as people install them below HOME. They run in a sandbox, and nothing else of HOME is seen there."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bakeoff.errors import InfraError
from bakeoff.protocols import Command, Place
from bakeoff.sandbox import choose_sandbox
from bakeoff.sandbox.bubblewrap import find_bubblewrap, visible_roots
from bakeoff.sandbox.programs import check_shown, installation, program_path, program_roots

pytestmark = pytest.mark.full

SCRIPT = Path(__file__).with_name("layouts.py")
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
MANAGER = '#!/bin/sh\n[ "$1 $2" = "which node" ] && echo "{real}"\n'
CANARY = "canary-51a7"
SECRETS = (
    *(".ssh/id_ed25519", ".aws/credentials", ".env", ".npmrc", ".config/x/token", "notes.txt", "bin/deploy.sh"),
    *("lib/notes.txt", "share/mail", "dev/other/.env", "project/.env", "project/src/main.py", "project/bin/deploy.sh"),
    *(".nvm/alias/token", ".local/share/keyrings/login", ".local/bin/private", "etc/npmrc", "versions.txt"),
)


@dataclass
class Layout:
    """A HOME with installed programs."""

    home: Path
    binaries: Path  # a real `node` and a real Python, which layouts link to
    path: list[Path] = field(default_factory=list)
    python: Path = Path(sys.executable)

    def put_python(self, prefix: str) -> Path:
        """Install Python below a prefix, as if it had been built for it."""
        folder = self.home / prefix
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "lib").mkdir(exist_ok=True)
        os.link(self.binaries / VERSION, folder / "bin" / VERSION)
        for name in ("python", "python3"):
            (folder / "bin" / name).symlink_to(VERSION)
        (folder / "lib" / VERSION).symlink_to(f"/usr/lib/{VERSION}")
        self.python = folder / "bin" / "python3"
        return self.python

    def put_venv(self, folder: str) -> Path:
        """Make an environment with the layout's Python, as `python -m venv` and uv do."""
        venv = self.home / folder
        (venv / "bin").mkdir(parents=True, exist_ok=True)
        (venv / "lib" / VERSION / "site-packages").mkdir(parents=True, exist_ok=True)
        (venv / "pyvenv.cfg").write_text(f"home = {self.python.parent}\nversion = {sys.version.split()[0]}\n")
        (venv / "bin" / "python").symlink_to(self.python)
        (venv / "bin" / "python3").symlink_to("python")
        self.python = venv / "bin" / "python3"
        return venv

    def put_node(self, prefix: str, *, on_path: bool = True) -> Path:
        folder = self.home / prefix
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        modules = folder / "lib" / "node_modules" / "npm" / "bin"
        modules.mkdir(parents=True)
        os.link(self.binaries / "node", folder / "bin" / "node")
        (modules / "npm-cli.js").write_text("#!/usr/bin/env node\nconsole.log(require('./version.js'))\n")
        (modules / "npm-cli.js").chmod(0o755)
        (modules / "version.js").write_text("module.exports = 'npm 1.2.3'\n")
        (folder / "bin" / "npm").symlink_to("../lib/node_modules/npm/bin/npm-cli.js")
        if on_path:
            self.path.append(folder / "bin")
        return folder / "bin" / "node"

    def put_shim(self, root: str, real: Path) -> None:
        for name, text in ((f"{root}/shims/node", "#!/bin/sh\nexit 7\n"), (f"{root}/bin/{root.lstrip('.')}", "")):
            file = self.home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text or MANAGER.format(real=real))
            file.chmod(0o755)
        self.path.append(self.home / root / "shims")


def plain_bin(layout: Layout) -> None:
    layout.put_node(".")


def local_bin(layout: Layout) -> None:
    layout.put_node(".local")
    layout.put_python(".local")


def link_in_bin(layout: Layout) -> None:
    real = layout.put_node("dev/node-v22", on_path=False)
    (layout.home / "bin").mkdir(exist_ok=True)
    for name in ("node", "npm"):
        (layout.home / "bin" / name).symlink_to(real.parent / name)
    layout.path.append(layout.home / "bin")


def nvm(layout: Layout) -> None:
    layout.put_node(".nvm/versions/node/v22.1.0")


def pyenv(layout: Layout) -> None:
    layout.put_python(".pyenv/versions/3.11.9")
    layout.put_node("dev")


def uv(layout: Layout) -> None:
    layout.put_python(f".local/share/uv/python/cp{VERSION}-linux")
    layout.put_venv("project/.venv")
    layout.put_node(".nvm/versions/node/v22.1.0")


def conda(layout: Layout) -> None:
    layout.put_python("miniconda3/envs/x")
    (layout.home / "miniconda3/envs/x/conda-meta").mkdir()
    (layout.home / "miniconda3/envs/x/conda-meta/history").write_text("")
    layout.put_node("miniconda3/envs/x")


def homebrew(layout: Layout) -> None:
    brew = layout.home / ".linuxbrew"
    layout.put_node(".linuxbrew/Cellar/node/22.1.0", on_path=False)
    layout.put_python(".linuxbrew/Cellar/python/3.11")
    for folder, links in {"opt": ("node", "python"), "bin": ("node", "npm")}.items():
        (brew / folder).mkdir()
        for name in links:
            versions = {"node": "node/22.1.0", "python": "python/3.11", "npm": "node/22.1.0"}[name]
            inner = "" if folder == "opt" else f"/bin/{name}"
            (brew / folder / name).symlink_to(f"../Cellar/{versions}{inner}")
    layout.python = brew / "opt/python/bin/python3"
    layout.path.append(brew / "bin")


def asdf(layout: Layout) -> None:
    real = layout.put_node(".asdf/installs/nodejs/22.1.0", on_path=False)
    layout.put_shim(".asdf", real)
    layout.put_python(".asdf/installs/python/3.11.9")


def volta(layout: Layout) -> None:
    real = layout.put_node(".volta/tools/image/node/22.1.0", on_path=False)
    folder = layout.home / ".volta/bin"
    folder.mkdir(parents=True)
    for name, text in (("volta-shim", "#!/bin/sh\nexit 7\n"), ("volta", MANAGER.format(real=real))):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "node").symlink_to("volta-shim")
    layout.path.append(folder)


def venv_is_home(layout: Layout) -> None:
    layout.put_python(".pyenv/versions/3.11.9")
    layout.put_venv(".")
    layout.put_node(".")


def venv_is_the_project(layout: Layout) -> None:
    layout.put_venv("project")
    layout.put_node("project")


def python_of_home(layout: Layout) -> None:
    layout.put_python(".")
    layout.put_venv("project/.venv")
    layout.put_node(".")


def links_lead_out(layout: Layout) -> None:
    """Folders of an installation that are links to private ones."""
    layout.put_node(".nvm/versions/node/v22.1.0")
    prefix = layout.home / ".nvm/versions/node/v22.1.0"
    (prefix / "share").symlink_to(layout.home)
    (prefix / "include").symlink_to(layout.home / ".ssh")
    (prefix / "libexec").symlink_to("/")
    layout.put_python(".pyenv/versions/3.11.9")
    (layout.home / ".pyenv/versions/3.11.9/share").symlink_to(layout.home / ".aws")
    (layout.home / ".pyenv/versions/3.11.9/bin/python3.9").symlink_to(layout.home / ".ssh/id_ed25519")


def home_is_a_link(layout: Layout) -> None:
    layout.put_node(".nvm/versions/node/v22.1.0")
    link = layout.home.parent / "linked"
    link.symlink_to(layout.home)
    layout.path = [link / path.relative_to(layout.home) for path in layout.path]
    layout.home = link


LAYOUTS = (
    *(plain_bin, local_bin, link_in_bin, nvm, pyenv, uv, conda, homebrew, asdf, volta),
    *(venv_is_home, venv_is_the_project, python_of_home, links_lead_out, home_is_a_link),
)


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory, needs_program: Callable[[str], str]) -> Path:
    """One copy of the real programs, which all layouts share as hard links."""
    python = Path("/usr/bin") / VERSION
    if not python.is_file() or not Path(f"/usr/lib/{VERSION}/ssl.py").is_file():
        pytest.skip(f"needs {python}: apt-get install {VERSION}")
    folder = tmp_path_factory.mktemp("binaries")
    shutil.copy2(Path(needs_program("node")).resolve(), folder / "node")
    shutil.copy2(python.resolve(), folder / VERSION)
    return folder


@pytest.fixture
def layout(tmp_path: Path, binaries: Path) -> Layout:
    home = tmp_path / "me"
    home.mkdir(mode=0o755)
    for name in SECRETS:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(CANARY)
    return Layout(home, binaries)


def outcome(layout: Layout, tmp_path: Path) -> dict[str, dict[str, Any]]:
    for folder in (tmp_path, *tmp_path.parents[:2], layout.home) if os.geteuid() == 0 else ():
        folder.chmod(0o755)  # where we are root, commands are not
    places = tmp_path / "places"
    places.mkdir(mode=0o755)
    files = [str(layout.home / name) for name in SECRETS]
    folders = sorted({str(Path(name).parent) for name in files} | {str(layout.home), str(tmp_path)})
    ours = Path(__file__).parents[2] / "src"
    env = {
        "HOME": str(layout.home),
        "PATH": ":".join([*map(str, layout.path), "/usr/bin", "/bin"]),
        "PYTHONPATH": f"{ours}:{sysconfig.get_path('purelib')}:{layout.home}",
        "NODE_PATH": str(layout.home),
        "PLACES": str(places),
    }
    argv = [str(layout.python), "-P", str(SCRIPT), json.dumps(files), json.dumps(folders)]
    done = subprocess.run(
        argv, env=env, cwd=layout.home / "project", capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return said


@pytest.mark.parametrize("make", LAYOUTS, ids=lambda make: make.__name__)
def test_its_programs_run_and_nothing_private_is_seen(
    make: Callable[[Layout], None], layout: Layout, tmp_path: Path
) -> None:
    make(layout)
    said = outcome(layout, tmp_path)
    for kind, results in said.items():
        if kind == "bwrap" and "missing" in results and not shutil.which("bwrap"):
            continue
        assert "missing" not in results, results
        for name, beginning in {"python": "python ", "node": "node ", "npm": "npm 1.2.3", "path": "[]"}.items():
            if (make, name) == (volta, "npm"):
                continue  # of a shim, only the program that was asked for
            code, stdout, stderr = results[name]
            assert (code, stdout[: len(beginning)]) == (0, beginning), f"{kind} {name}: {stdout} {stderr}"
            assert "undefined" in stdout or name != "node"
        code, stdout, stderr = results["look"]
        assert code == 0, f"{kind}: {stderr}"
        seen = json.loads(stdout)
        assert CANARY not in stdout, f"{kind}: {seen}"
        names = {name for _, listed in seen for name in listed}
        assert not names & {".ssh", ".aws", ".env", "notes.txt", "id_ed25519", "deploy.sh", "main.py"}, (
            f"{kind}: {seen}"
        )


@pytest.mark.parametrize(
    ("program", "link"),
    {
        "pipx": (".local/share/pipx/venvs/agent/bin/agent", ".local/bin/agent"),
        "uv tool": (".local/share/uv/tools/agent/bin/agent", ".local/bin/agent"),
        "npm prefix is home": ("lib/node_modules/agent/cli.js", "bin/agent"),
        "npm-global": (".npm-global/lib/node_modules/agent/cli.js", ".npm-global/bin/agent"),
        "a file in bin": ("bin/agent", None),
        "venv in home": ("bin/agent", "pyvenv.cfg"),
    }.values(),
)
def test_of_an_agent_below_home_only_its_own_files_are_shown(
    program: str, link: str | None, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = layout.home / program
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    if "venvs" in program or "tools" in program or link == "pyvenv.cfg":
        (layout.home / "pyvenv.cfg" if link == "pyvenv.cfg" else script.parents[1] / "pyvenv.cfg").write_text(
            "home = x"
        )
    if link and link != "pyvenv.cfg":
        (layout.home / link).parent.mkdir(parents=True, exist_ok=True)
        (layout.home / link).symlink_to(script)
    monkeypatch.setenv("HOME", str(layout.home))
    monkeypatch.setenv("PATH", f"{(layout.home / (link or program)).parent}:{script.parent}:/usr/bin:/bin")
    shown, links = visible_roots(program_roots(program_path("agent") or ""))
    assert script.resolve() in shown or any(root in script.resolve().parents for root in shown)
    secrets = [layout.home / name for name in SECRETS]
    assert not [(root, path) for root in shown for path in secrets if path.is_relative_to(root)]
    assert not [path for path in links if path.is_dir() and layout.home.is_relative_to(path.resolve())]


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@pytest.mark.parametrize("kind", ["process", "bwrap"])
@pytest.mark.parametrize("named", ["home", "above home", "/", "link to home", "above the current folder"])
async def test_a_sandbox_refuses_to_show_a_home_and_what_lies_around_the_current_folder(
    named: str, kind: str, place: Place, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "bwrap" and find_bubblewrap()[0] is None:
        pytest.skip("needs bubblewrap: apt-get install bubblewrap")
    elsewhere = layout.home.parent / "elsewhere" / "project"
    elsewhere.mkdir(parents=True)
    (layout.home.parent / "link").symlink_to(layout.home)
    path = {
        "home": layout.home,
        "above home": layout.home.parent,
        "/": Path("/"),
        "link to home": layout.home.parent / "link",
        "above the current folder": elsewhere.parent,
    }[named]
    monkeypatch.setenv("HOME", str(layout.home))
    with inside(elsewhere):
        sandbox = choose_sandbox(kind)
        with pytest.raises(InfraError, match="install the program in a folder of its own") as refused:
            await sandbox.run(Command(("true",), place, 10.0, readable=(path,)))
    assert f"cannot show {path}:" in str(refused.value)
    assert refused.value.permanent


def test_links_of_an_installation_that_lead_elsewhere_are_left_out(layout: Layout) -> None:
    links_lead_out(layout)
    found = list(installation(layout.home / ".nvm/versions/node/v22.1.0"))
    assert {path.name for path in found} == {"bin", "lib"}
    check_shown(Command((), Place(Path(), Path(), Path()), 1.0, readable=tuple(found)))
