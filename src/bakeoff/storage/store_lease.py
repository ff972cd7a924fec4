"""Let only one process write a run in an object store.

Objects `lease/000001`, `lease/000002`, … lie beside the journal. The highest one belongs to the writer, which renews
it. To take over a lease that was released or has expired is to make the next object, and a store lets only one process
do that. Pieces of the journal that an earlier writer still uploads then count for nothing: they carry its number. The
plan, the seal, the labels and the signature do not: a writer looks for a higher lease right before it writes them.
"""

import os
import re
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.storage.object_store import ObjectStore, StoreError

MAX_LEASE_SECONDS = 60.0
SHORTEST_LEASE_SECONDS = 5.0
_INTERVALS = 6
_NUMBER = re.compile(r"\d{6}")
_HIGHEST = 999_999


def lease_seconds(interval: float) -> float:
    """Return after how many seconds a lease that was not renewed can be taken over, for an interval between uploads.

    The clocks of the machines must differ by less than that.
    """
    return min(MAX_LEASE_SECONDS, max(SHORTEST_LEASE_SECONDS, _INTERVALS * interval))


class LeaseLost(StoreError):
    """Another process has taken over the run."""


class _Holder(FrozenModel):
    owner: str
    host: str
    process: int
    expires: float  # seconds since 1970; 0 once it is released


@dataclass(slots=True)
class StoreLease:
    """The right to write one run. Use `acquire`."""

    store: ObjectStore
    run: str  # the key of the run
    number: int
    seconds: float
    clock: Callable[[], float] = time.time
    _owner: str = field(default_factory=lambda: uuid.uuid4().hex)
    _renewed: float = 0.0

    @classmethod
    def acquire(
        cls,
        store: ObjectStore,
        run: str,
        seconds: float = MAX_LEASE_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> "StoreLease":
        """Take the lease of a run. Raise StoreError if another process holds it."""
        highest = _highest(store, run)
        if highest and (holder := _holder(store, run, highest)) is not None and holder.expires > clock():
            left = holder.expires - clock()
            raise StoreError(
                f"{store.address}/{run} is being written by process {holder.process} on {holder.host}: wait for it, or "
                f"stop it; if it was killed, its lease expires in {left:.0f} seconds"
            )
        if highest >= _HIGHEST:
            raise StoreError(f"{store.address}/{run}/lease/{highest} is not of Bakeoff: delete it, or use another run")
        lease = cls(store, run, highest + 1, seconds, clock)
        store.create(lease._key, lease._content(clock() + seconds))
        # Libraries repeat a request whose answer was lost, and are refused then. Some servers refuse nobody.
        if (made := _holder(store, run, lease.number)) is None or made.owner != lease._owner:
            raise StoreError(f"{store.address}/{run} was taken by another process just now: wait for it")
        lease._renewed = clock()
        lease.check()
        return lease

    def renew(self) -> None:
        """Renew the lease if a third of its time is over. Raise LeaseLost if another process has taken it over."""
        if self.clock() - self._renewed < self.seconds / 3:
            return
        self.check()
        self.store.write(self._key, self._content(self.clock() + self.seconds))
        self._renewed = self.clock()

    def check(self) -> None:
        """Raise LeaseLost if another process has taken over the run."""
        holder = _holder(self.store, self.run, self.number)
        replaced = holder is not None and holder.owner != self._owner
        if replaced or _highest(self.store, self.run) > self.number:
            raise LeaseLost(f"another process has taken over {self.store.address}/{self.run}: this one stops")

    def release(self) -> None:
        """Let others take the lease at once."""
        self.store.write(self._key, self._content(0.0))

    @property
    def _key(self) -> str:
        return f"{self.run}/lease/{self.number:06d}"

    def _content(self, expires: float) -> bytes:
        holder = _Holder(owner=self._owner, host=socket.gethostname()[:100], process=os.getpid(), expires=expires)
        return holder.model_dump_json().encode()


def _highest(store: ObjectStore, run: str) -> int:
    names = (key.rpartition("/")[2] for key in store.sizes(f"{run}/lease"))
    return max((int(name) for name in names if _NUMBER.fullmatch(name)), default=0)


def _holder(store: ObjectStore, run: str, number: int) -> _Holder | None:
    try:
        return _Holder.model_validate_json(store.read(f"{run}/lease/{number:06d}") or b"")
    except ValidationError:  # not written by us: it holds nobody back
        return None
