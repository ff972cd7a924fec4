"""Plans tasks that depend on one another on a few workers, the most urgent first."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    name: str
    duration: int
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Slot:
    task: str
    worker: int
    start: int
    end: int


class PlanError(ValueError):
    """The tasks cannot be planned."""


class CycleError(PlanError):
    def __init__(self, cycle: list[str]) -> None:
        super().__init__(f"tasks wait for one another: {', '.join(cycle)}")
        self.cycle = cycle


def plan(tasks: Iterable[Task], workers: int) -> list[Slot]:
    if workers < 1:
        raise PlanError(f"at least one worker is needed, not {workers}")
    by_name = _named(tasks)
    followers = _followers(by_name)
    order = _ordered(by_name, followers)
    return _slots(by_name, followers, _urgencies(by_name, followers, order), workers)


def _named(tasks: Iterable[Task]) -> dict[str, Task]:
    by_name: dict[str, Task] = {}
    for task in tasks:
        if task.name in by_name:
            raise PlanError(f"two tasks are called {task.name}")
        if task.duration < 1:
            raise PlanError(f"task {task.name} takes {task.duration}, which is less than 1")
        by_name[task.name] = task
    return by_name


def _followers(by_name: dict[str, Task]) -> dict[str, list[str]]:
    followers: dict[str, list[str]] = {name: [] for name in by_name}
    for task in by_name.values():
        for earlier in set(task.after):
            if earlier not in by_name:
                raise PlanError(f"task {task.name} comes after {earlier}, which is no task")
            followers[earlier].append(task.name)
    return followers


def _ordered(by_name: dict[str, Task], followers: dict[str, list[str]]) -> list[str]:
    waiting = {name: len(set(task.after)) for name, task in by_name.items()}
    order = [name for name, count in waiting.items() if count == 0]
    for name in order:
        for follower in followers[name]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                order.append(follower)
    if len(order) < len(by_name):
        raise CycleError(_cycle(by_name, set(by_name) - set(order)))
    return order


def _cycle(by_name: dict[str, Task], stuck: set[str]) -> list[str]:
    # Every stuck task comes after a stuck one, so that walking back must return.
    path: list[str] = []
    places: dict[str, int] = {}
    name = min(stuck)
    while name not in places:
        places[name] = len(path)
        path.append(name)
        name = next(earlier for earlier in by_name[name].after if earlier in stuck)
    cycle = path[places[name] :]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def _urgencies(by_name: dict[str, Task], followers: dict[str, list[str]], order: list[str]) -> dict[str, int]:
    urgencies: dict[str, int] = {}
    for name in reversed(order):
        longest = max((urgencies[follower] for follower in followers[name]), default=0)
        urgencies[name] = by_name[name].duration + longest
    return urgencies


def _slots(
    by_name: dict[str, Task], followers: dict[str, list[str]], urgencies: dict[str, int], workers: int
) -> list[Slot]:
    waiting = {name: len(set(task.after)) for name, task in by_name.items()}
    ready = [(-urgencies[name], name) for name, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    free = list(range(workers))
    running: list[tuple[int, int, str]] = []
    slots: list[Slot] = []
    now = 0
    while ready or running:
        while ready and free:
            name = heapq.heappop(ready)[1]
            worker = heapq.heappop(free)
            slots.append(Slot(name, worker, now, now + by_name[name].duration))
            heapq.heappush(running, (slots[-1].end, worker, name))
        now = running[0][0]
        while running and running[0][0] == now:
            _, worker, name = heapq.heappop(running)
            heapq.heappush(free, worker)
            for follower in followers[name]:
                waiting[follower] -= 1
                if waiting[follower] == 0:
                    heapq.heappush(ready, (-urgencies[follower], follower))
    return sorted(slots, key=lambda slot: (slot.start, slot.worker))
