from dataclasses import dataclass
from graphlib import CycleError as GraphCycle
from graphlib import TopologicalSorter


@dataclass(frozen=True)
class Task:
    name: str
    duration: int
    after: tuple = ()


@dataclass(frozen=True)
class Slot:
    task: str
    worker: int
    start: int
    end: int


class PlanError(ValueError):
    pass


class CycleError(PlanError):
    def __init__(self, cycle):
        super().__init__(" -> ".join(cycle))
        self.cycle = cycle


def plan(tasks, workers):
    if workers < 1:
        raise PlanError("no workers")
    tasks = {task.name: task for task in tasks}
    for task in tasks.values():
        for name in task.after:
            if name not in tasks:
                raise PlanError(f"{task.name} needs unknown {name}")
    try:
        order = list(TopologicalSorter({task.name: sorted(task.after) for task in tasks.values()}).static_order())
    except GraphCycle as error:
        raise CycleError(error.args[1][:-1]) from None
    free = [0] * workers
    ends = {}
    slots = []
    for name in order:
        task = tasks[name]
        earliest = max((ends[other] for other in task.after), default=0)
        worker = min(range(workers), key=lambda index: (max(free[index], earliest), index))
        start = max(free[worker], earliest)
        free[worker] = ends[name] = start + task.duration
        slots.append(Slot(name, worker, start, ends[name]))
    return sorted(slots, key=lambda slot: (slot.start, slot.worker))
