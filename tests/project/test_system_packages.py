"""scripts/system-packages.sh, on machines that are pretended by what is on PATH."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "system-packages.sh"
TOOLS = ("mktemp", "rm", "tail", "touch", "chmod")


class Machine:
    """A folder of programs that is all there is on PATH."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.calls = folder / "calls"
        self.calls.touch()
        # The script also looks into the places for administrators; this machine has none of those.
        self.script = folder / "script.sh"
        self.script.write_text(SCRIPT.read_text("utf-8").replace("PATH=$PATH:/usr/sbin:/sbin", ""), "utf-8")
        for tool in TOOLS:
            self.program(tool, f'PATH=/usr/bin:/bin exec {tool} "$@"')
        self.user(1000)

    def program(self, name: str, body: str = ":") -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
        path.chmod(0o755)

    def user(self, uid: int) -> None:
        self.program("id", f"echo {uid}")

    def apt(self, installs: str) -> None:
        self.program("apt-cache", "exit 1")
        body = f'echo "$*" >> "{self.calls}"\n[ "$1" = install ] || exit 0\n'
        self.program(
            "apt-get", body + f'for name in {installs}; do : > "{self.bin}/$name"; chmod +x "{self.bin}/$name"; done'
        )

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        command = ["/bin/sh", str(self.script), *options]
        return subprocess.run(
            command, env={"PATH": str(self.bin)}, capture_output=True, text=True, timeout=60, check=False
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_what_is_missing_is_named_with_the_command_to_type(machine: Machine) -> None:
    machine.program("bwrap")
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "chromium is not here: sudo apt-get install chromium",
        "golang-go is not here: sudo apt-get install golang-go",
        "g++ is not here: sudo apt-get install g++",
        "cargo is not here: sudo apt-get install cargo",
        "default-jdk-headless is not here: sudo apt-get install default-jdk-headless",
        "docker.io is not here: sudo apt-get install docker.io",
    ]


def test_a_missing_package_is_an_error_where_all_are_required(machine: Machine) -> None:
    assert machine.run("--require").returncode == 1


def test_root_gets_only_what_is_missing_installed(machine: Machine) -> None:
    machine.user(0)
    machine.program("bwrap")
    machine.apt(installs="chromium dockerd docker go g++ cargo javac")
    done = machine.run("--require")
    assert done.returncode == 0, done.stderr
    assert (
        machine.calls.read_text()
        == "install --yes --quiet --no-install-recommends chromium golang-go g++ cargo default-jdk-headless docker.io\n"
    )
    assert done.stdout.splitlines()[-1] == "✓ chromium, bubblewrap, docker.io, Go, g++, cargo and a JDK are here"


def test_a_sudo_without_password_is_used(machine: Machine) -> None:
    machine.program(
        "sudo", 'while case $1 in -*) true ;; *) false ;; esac do shift; done; [ "$1" = true ] || exec "$@"'
    )
    machine.apt(installs="chromium bwrap dockerd docker go g++ cargo javac")
    done = machine.run("--require")
    assert done.returncode == 0, done.stderr


def test_a_sudo_that_asks_is_left_alone(machine: Machine) -> None:
    machine.program("sudo", "exit 1")
    machine.apt(installs="chromium")
    assert machine.run().returncode == 0
    assert machine.calls.read_text() == ""


def test_the_lists_are_fetched_once_when_the_packages_are_not_found(machine: Machine) -> None:
    machine.user(0)
    machine.apt(installs="nothing-of-use")
    machine.program(
        "apt-get", f'echo "$1" >> "{machine.calls}"; [ "$1" = update ] || {{ echo E: no such package; exit 100; }}'
    )
    done = machine.run("--require")
    assert done.returncode == 1
    assert machine.calls.read_text().split() == ["install", "update", "install"]
    assert "E: no such package" in done.stderr


def test_nothing_is_done_when_all_are_here(machine: Machine) -> None:
    for name in ("chromium", "bwrap", "dockerd", "docker", "go", "g++", "cargo", "javac"):
        machine.program(name)
    done = machine.run("--require")
    assert (done.returncode, done.stdout) == (
        0,
        "✓ chromium, bubblewrap, docker.io, Go, g++, cargo and a JDK are here\n",
    )


def test_an_unknown_option_is_refused(machine: Machine) -> None:
    done = machine.run("--force")
    assert done.returncode == 2
    assert "--force: not one of --require, --print" in done.stderr
