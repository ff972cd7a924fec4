"""Hide the figures of the machine in /proc from graded commands, so that two runs cannot communicate by them.

The files that programs need to know the size of the machine are replaced by others that say the same in every run.
"""

import os
import re
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bakeoff.protocols import Place

PROC = Path("/proc")
# What does not change while the machine runs, or is a command's own.
KEPT = {
    *("acpi", "asound", "bus", "cmdline", "config.gz", "consoles", "crypto", "devices", "dma", "driver"),
    *("execdomains", "filesystems", "iomem", "ioports", "kallsyms", "misc", "modules", "mounts", "mtrr", "net"),
    *("partitions", "scsi", "self", "sys", "sysvipc", "thread-self", "tty", "version"),
}
_DEEPER = ("sys/fs", "sys/kernel/pty")
_EMPTY = "empty"


@cache
def fixed_figures() -> dict[str, str]:
    """Return the texts that take the place of live figures: a machine of this size that has done nothing yet."""
    total = re.search(r"^MemTotal:.*$", (PROC / "meminfo").read_text(), re.MULTILINE)
    size = total[0].partition(":")[2] if total else " 0 kB"
    memory = [f"{name}:{size}" for name in ("MemTotal", "MemFree", "MemAvailable")]
    memory += [f"{name}: 0 kB" for name in ("Buffers", "Cached", "SwapTotal", "SwapFree")]
    idle = " 0" * 10
    processors = [f"cpu {idle}", *(f"cpu{number}{idle}" for number in range(os.cpu_count() or 1))]
    return {
        "cpuinfo": re.sub(r"^cpu MHz.*\n", "", (PROC / "cpuinfo").read_text(), flags=re.MULTILINE),
        "loadavg": "0.00 0.00 0.00 1/1 1\n",
        "meminfo": "\n".join([*memory, ""]),
        "stat": "\n".join([*processors, "ctxt 0", "btime 0", "processes 1", "procs_running 1", "procs_blocked 0", ""]),
        "uptime": "1.00 1.00\n",
    }


@cache
def live_figures() -> list[Path]:
    """Return the files and folders of /proc that everybody may read and that tell of more than one process."""
    top = [path for path in PROC.iterdir() if path.name not in KEPT and not path.name.isdigit()]
    deeper = [PROC / name for name in _DEEPER]
    return [path for path in (*top, *deeper) if path.exists() and path.stat().st_mode & stat.S_IROTH]


def hidden_figures(place: Place) -> Iterator[tuple[Path, Path]]:
    """Yield what has to be shown instead, and the path in /proc that it covers. Write it beside the place's folders."""
    shown = place.home.parent
    (shown / _EMPTY).mkdir(mode=0o755, exist_ok=True)
    for name, text in fixed_figures().items():
        file = shown / name
        if not file.exists():
            file.write_text(text, encoding="utf-8")
            file.chmod(0o644)
    for path in live_figures():
        instead = shown / path.name if path.name in fixed_figures() else Path(os.devnull)
        yield shown / _EMPTY if path.is_dir() else instead, path
