"""Put a byte into a channel, or get it out again: `talk.py ROLE CHANNEL BYTE HOLD`, in a folder beside `SHARED`.

This program runs inside of the sandboxes, without anything of Bakeoff. SHARED is a folder that both sides can only
read. `put` makes the file `ready` in its own folder, and stays if HOLD is 1, because some channels end with their
process. `listen` is started before `put` and waits for it. `get` and `listen` print the byte, or `None`.
"""
# mypy: ignore-errors
# It calls the kernel with numbers and addresses, which no type describes.

import contextlib
import ctypes
import fcntl
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path

ROLE, CHANNEL, BYTE, HOLD, SHARED = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1", Path(sys.argv[5])
BITS = [place for place in range(8) if BYTE >> place & 1]
FILES = [SHARED / f"{number:03}" for number in range(256)]
LARGE = SHARED / "large"
PAGES = [4096 * 32 * (place + 1) for place in range(8)]
PORT, NAME = 21000, "bakeoff-channel"
WAIT_SECONDS = 4.0
LOCK = "hhqqi4x"
libc = ctypes.CDLL(None, use_errno=True)
kept: list[object] = []


def keep(thing):
    kept.append(thing)
    return thing


def of_bits(found):
    return sum(1 << place for place, is_set in enumerate(found) if is_set)


def call(number, *words):
    return libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, words))


def refused(action):
    try:
        action()
    except OSError:
        return True
    return False


def ready():
    Path("ready").write_text("")


# --- locks and marks on files -------------------------------------------------------------------------------------


def put_lock(command):
    fcntl.fcntl(keep(LARGE.open("rb")), command, struct.pack(LOCK, 0, 0, BYTE + 1, 1, 0))


def get_lock(command):
    asked = struct.pack(LOCK, 1, 0, 0, 1000, 0)
    kind, _, start, _, _ = struct.unpack(LOCK, fcntl.fcntl(keep(LARGE.open("rb")), command, asked))
    return start - 1 if kind != 2 else None


def put_flock():
    for place in BITS:
        fcntl.flock(keep(FILES[place].open("rb")), fcntl.LOCK_SH)


def get_flock():
    exclusive = fcntl.LOCK_EX | fcntl.LOCK_NB
    return of_bits(refused(lambda file=file: fcntl.flock(keep(file.open("rb")), exclusive)) for file in FILES[:8])


def put_hint():
    for place in range(8):
        with FILES[place].open("rb") as file:
            fcntl.fcntl(file, 1036, struct.pack("Q", 3 if place in BITS else 2))


def get_hint():
    hints = [struct.unpack("Q", fcntl.fcntl(keep(file.open("rb")), 1035, bytes(8)))[0] for file in FILES[:8]]
    return of_bits(hint == 3 for hint in hints)


def put_open_files():
    kept.extend(FILES[place].open("rb") for place in BITS)


def get_lease():
    return of_bits(refused(lambda file=file: fcntl.fcntl(keep(file.open("rb")), 1024, 1)) for file in FILES[:8])


def put_opened():
    FILES[BYTE].read_bytes()


def listen_inotify():
    watching = libc.inotify_init1(os.O_NONBLOCK)
    numbers = {libc.inotify_add_watch(watching, os.fsencode(file), 0x20): place for place, file in enumerate(FILES)}
    ready()
    events = wait_for(watching)
    return numbers.get(struct.unpack_from("i", events)[0]) if events else None


def listen_fanotify():
    watching = libc.fanotify_init(0x200 | 0x2, 0)
    libc.fanotify_mark(watching, 1, ctypes.c_uint64(0x20), -100, os.fsencode(FILES[BYTE]))
    ready()
    return BYTE if wait_for(watching) else None


def wait_for(descriptor):
    limit = time.monotonic() + WAIT_SECONDS
    while descriptor >= 0 and time.monotonic() < limit:
        with contextlib.suppress(BlockingIOError):
            return os.read(descriptor, 4096)
        time.sleep(0.02)
    return b""


def listen_dnotify():
    told = threading.Event()
    signal.signal(signal.SIGIO, lambda *_: told.set())
    fcntl.fcntl(os.open(SHARED, os.O_RDONLY), 1026, 0x1)
    ready()
    limit = time.monotonic() + WAIT_SECONDS
    while not told.is_set() and time.monotonic() < limit:
        time.sleep(0.02)
    return BYTE if told.is_set() else None


def put_atime():
    for place in BITS:
        FILES[place].read_bytes()


def get_atime():
    return of_bits(file.stat().st_atime > time.time() - 3600 for file in FILES[:8])


# --- pages in memory ----------------------------------------------------------------------------------------------


def put_pages():
    file = os.open(LARGE, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    for place in BITS:
        os.pread(file, 1, PAGES[place])


def mapped():
    with LARGE.open("rb") as file:
        return keep(mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ))


def address_of(area):
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    return libc.mmap(None, len(area), 1, 1, os.open(LARGE, os.O_RDONLY), 0)


def get_mincore():
    area = mapped()
    states = (ctypes.c_ubyte * (len(area) // 4096))()
    if libc.mincore(ctypes.c_void_p(address_of(area)), ctypes.c_size_t(len(area)), states) != 0:
        return None
    return of_bits(states[page // 4096] & 1 for page in PAGES)


def get_cachestat():
    file, found = os.open(LARGE, os.O_RDONLY), []
    for page in PAGES:
        asked, told = (ctypes.c_uint64 * 2)(page, 4096), (ctypes.c_uint64 * 5)()
        if call(451, file, ctypes.addressof(asked), ctypes.addressof(told), 0) != 0:
            return None
        found.append(told[0] > 0)
    return of_bits(found)


def get_nowait():
    file = os.open(LARGE, os.O_RDONLY)
    found = [not refused(lambda page=page: os.preadv(file, [bytearray(1)], page, os.RWF_NOWAIT)) for page in PAGES]
    return of_bits(found)


def get_faults():
    area, found = mapped(), []
    area.madvise(mmap.MADV_RANDOM)
    for page in PAGES:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        area[page]
        found.append(resource.getrusage(resource.RUSAGE_SELF).ru_majflt == before)
    return of_bits(found)


def futex(operation, place, value):
    return call(202 if os.uname().machine == "x86_64" else 98, place, operation, value, 0, 0, 0)


def put_futex():
    place = address_of(mapped()) + 4 * BYTE
    value = ctypes.c_int.from_address(place).value
    threading.Thread(target=futex, args=(0, place, value), daemon=True).start()
    time.sleep(0.2)


def get_futex():
    base = address_of(mapped())
    return next((number for number in range(256) if futex(1, base + 4 * number, 1) > 0), None)


# --- names that both may know -------------------------------------------------------------------------------------


def put_named(family, kind, address):
    made = keep(socket.socket(family, kind))
    made.bind(address(BYTE))
    made.listen()


def get_named(family, kind, address):
    socket.socket(family, kind).close()
    for number in range(256):
        try:
            with socket.socket(family, kind) as made:
                made.bind(address(number))
        except OSError as error:
            if error.errno == 98:
                return number
    return None


def of_loopback(number):
    return "127.0.0.1", PORT + number


def of_names(number):
    return f"\0{NAME}-{number}"


def of_machines(number):
    return 0xFFFFFFFF, PORT + number


def folders():
    return [Path(name) for name in ("/dev/shm", "/tmp", "/var/tmp", os.environ["HOME"], "/run", "/", str(SHARED))]


def put_file():
    for folder in folders():
        with contextlib.suppress(OSError):
            (folder / NAME).write_text(str(BYTE))


def get_file():
    found = [int((folder / NAME).read_text()) for folder in folders() if (folder / NAME).exists()]
    return found[0] if found else None


def put_sysv():
    libc.shmget(PORT + BYTE, 4096, 0o1666)


def get_sysv():
    for number in range(256):
        if (found := libc.shmget(PORT + number, 4096, 0o666)) >= 0:
            libc.shmctl(found, 0, None)
            return number
    return None


def put_queue():
    libc.mq_open(f"/{NAME}-{BYTE}".encode(), 0o102, 0o666, None)


def get_queue():
    return next((number for number in range(256) if libc.mq_unlink(f"/{NAME}-{number}".encode()) == 0), None)


KEY_CALLS = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]


def put_key():
    kind, name, text = (ctypes.create_string_buffer(word) for word in (b"user", NAME.encode(), b"%03d" % BYTE))
    call(KEY_CALLS[0], *map(ctypes.addressof, (kind, name, text)), 3, -4)


def get_key():
    kind, name, text = (ctypes.create_string_buffer(word) for word in (b"user", NAME.encode(), b"000"))
    key = call(KEY_CALLS[1], 10, -4, ctypes.addressof(kind), ctypes.addressof(name), 0)
    size = call(KEY_CALLS[1], 11, key, ctypes.addressof(text), 3) if key > 0 else 0
    call(KEY_CALLS[1], 9, key, -4)
    return int(text.value) if size == 3 else None


def put_crash():
    ready()
    ctypes.string_at(0x4200000000 + BYTE)


def get_crash():
    said = ctypes.create_string_buffer(1 << 20)
    size = libc.klogctl(3, said, len(said))
    found = [line.partition(b"segfault at 42000000")[2] for line in said.raw[: max(size, 0)].splitlines()]
    return next((int(word[:2], 16) for word in reversed(found) if word), None)


# --- figures: `get` prints all of them, and `put` moves them ------------------------------------------------------


def put_figures():
    kept.append(bytearray(b"x") * (40 << 20))
    with Path("moved").open("wb") as file:
        file.write(bytes(16 << 20))
        os.fsync(file.fileno())
    kept.extend(os.pipe() for _ in range(200))
    with contextlib.suppress(OSError):
        server = keep(socket.create_server(("127.0.0.1", 0)))
        for _ in range(4):
            client = keep(socket.create_connection(server.getsockname()))
            keep(server.accept())
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    client.send(bytes(1 << 16))
    limit = time.monotonic() + 0.5
    while time.monotonic() < limit:
        pass


def get_figures():
    told = {name: text_of(path) for name, path in FIGURES.items()}
    told["sysinfo"] = text_of_sysinfo()
    for name, ask in {"free-space": lambda: tuple(os.statvfs("."))[:8], "new-file": disk_place}.items():
        try:
            told[name] = str(ask())
        except OSError:
            told[name] = "None"
    told["inode-numbers"] = str(os.fstat(os.pipe()[0]).st_ino)
    told["socket-numbers"] = str(socket.socket(socket.AF_UNIX).getsockopt(socket.SOL_SOCKET, 57, 8))
    told["process-numbers"] = str(os.getpid())
    return told


FIGURES = {
    **{name: f"/proc/{name}" for name in ("loadavg", "stat", "meminfo", "vmstat", "uptime", "diskstats", "interrupts")},
    **{name: f"/proc/{name}" for name in ("softirqs", "locks", "zoneinfo", "buddyinfo", "key-users", "cgroups")},
    "pressure": "/proc/pressure/cpu",
    "file-numbers": "/proc/sys/fs/file-nr",
    "inode-counts": "/proc/sys/fs/inode-nr",
    "dentry-counts": "/proc/sys/fs/dentry-state",
    "socket-memory": "/proc/net/sockstat",
    "block-devices": "/sys/block/vda/stat",
    "memory-of-node": "/sys/devices/system/node/node0/vmstat",
}


def text_of(path):
    try:
        return Path(path).read_text()
    except OSError:
        return "None"


def text_of_sysinfo():
    told = ctypes.create_string_buffer(256)
    return told.raw[8:112].hex() if libc.sysinfo(told) == 0 else "None"  # without the time since the start


def disk_place():
    with Path("placed").open("w+b") as file:
        file.write(bytes(1 << 20))
        os.fsync(file.fileno())
        asked = bytearray(struct.pack("QQIIII", 0, 1 << 30, 1, 0, 1, 0) + bytes(56))
        fcntl.ioctl(file, 0xC020660B, asked)
        return struct.unpack_from("QQ", asked, 32)[1]


CHANNELS = {
    "posix-lock": (lambda: put_lock(6), lambda: get_lock(5)),
    "ofd-lock": (lambda: put_lock(37), lambda: get_lock(36)),
    "flock": (put_flock, get_flock),
    "write-hint": (put_hint, get_hint),
    "lease": (put_open_files, get_lease),
    "inotify": (put_opened, listen_inotify),
    "fanotify": (put_opened, listen_fanotify),
    "dnotify": (put_opened, listen_dnotify),
    "atime": (put_atime, get_atime),
    "mincore": (put_pages, get_mincore),
    "cachestat": (put_pages, get_cachestat),
    "read-nowait": (put_pages, get_nowait),
    "page-faults": (put_pages, get_faults),
    "futex": (put_futex, get_futex),
    "loopback-port": tuple(
        lambda act=act: act(socket.AF_INET, socket.SOCK_STREAM, of_loopback) for act in (put_named, get_named)
    ),
    "abstract-name": tuple(
        lambda act=act: act(socket.AF_UNIX, socket.SOCK_STREAM, of_names) for act in (put_named, get_named)
    ),
    "vsock-port": tuple(lambda act=act: act(40, socket.SOCK_STREAM, of_machines) for act in (put_named, get_named)),
    "left-file": (put_file, get_file),
    "sysv-key": (put_sysv, get_sysv),
    "message-queue": (put_queue, get_queue),
    "kernel-key": (put_key, get_key),
    "kernel-log": (put_crash, get_crash),
    "figures": (put_figures, get_figures),
}


def main():
    """Do what the arguments say. What is refused is not there."""
    put, get = CHANNELS[CHANNEL]
    try:
        got = put() if ROLE == "put" else get()
    except OSError:
        got = None
    ready()
    if ROLE == "put" and HOLD:
        time.sleep(60)
    print(repr(got))


main()
