"""Fork a supervisor for each command, which is faster than starting Python each time.

The server uses only the standard library and hardly any environment. Other processes of the user
cannot inspect it or its supervisors. A request is one byte with four descriptors: a command's
control socket, and its standard input, output and error.

The server is a subreaper: it inherits and ends the processes of killed supervisors. It ends when
Bakeoff closes the connection or dies. Supervisors do not depend on it: each has its own socket.
"""

import gc
import os
import select
import signal
import socket

from .command import supervise
from .ending import ChildWatch
from .kernel import LINUX, PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, children_of, prctl, tree_below

READY = b"r"
DESCRIPTORS = 4  # control, and the three standard streams


def main(connection: int) -> None:
    """Serve requests for supervisors until the socket is closed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # Bakeoff handles Ctrl-C, and tells supervisors by socket
    if LINUX:
        prctl(PR_SET_DUMPABLE, 0)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    gc.disable()
    gc.freeze()  # a collection would touch, and so copy, every page
    with socket.socket(fileno=connection) as requests:
        requests.set_inheritable(False)
        requests.sendall(READY)
        ForkServer(requests).run()


class ForkServer(ChildWatch):
    """Serves requests until Bakeoff ends."""

    def __init__(self, requests: socket.socket) -> None:
        super().__init__()
        self.requests = requests
        self.supervisors = set[int]()
        self.has_orphans = False  # a supervisor was killed, and its command may still run

    def run(self) -> None:
        """Fork a supervisor for each request, until Bakeoff closes its end of the socket.

        The loop also wakes when children end, to end the processes that they left behind.
        """
        poller = select.poll()
        poller.register(self.requests, select.POLLIN)
        poller.register(self.woken, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in poller.poll()]
            if self.woken in ready:
                self.collect()
                if self.has_orphans and LINUX:
                    self.end_orphans()
            if self.requests.fileno() not in ready:
                continue
            word, descriptors, _, _ = socket.recv_fds(self.requests, 1, DESCRIPTORS)
            if not word:
                return
            if len(descriptors) == DESCRIPTORS:
                pid = os.fork()
                if pid == 0:
                    self.become_supervisor(*descriptors)
                self.supervisors.add(pid)
            for descriptor in descriptors:
                os.close(descriptor)

    def become_supervisor(self, control: int, *streams: int) -> None:
        """Supervise one command in the forked child. Never return, even after an error."""
        try:
            signal.set_wakeup_fd(-1)
            for descriptor in (self.requests.detach(), self.woken, self.waker):
                os.close(descriptor)
            os.setsid()
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
                os.close(descriptor)
            supervise(control)
        finally:
            os._exit(1)

    def ended(self, pid: int, status: int, peak: int) -> None:  # noqa: ARG002 - only a supervisor's end counts
        """Note the end of a child. A failed or killed supervisor may leave processes behind."""
        if pid in self.supervisors:
            self.supervisors.discard(pid)
            self.has_orphans |= status != 0

    def end_orphans(self) -> None:
        """Kill the processes of killed supervisors."""
        orphans = [pid for pid in children_of(os.getpid()) if pid not in self.supervisors]
        self.has_orphans = bool(orphans)  # the end of each wakes us, to look for its children
        for pid in [pid for orphan in orphans for pid in (orphan, *tree_below(orphan))]:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # it has ended, or changed its user
