import random

import pytest
from solution import CycleError, PlanError, Slot, Task, plan


def cycle_of(tasks):
    with pytest.raises(CycleError) as caught:
        plan(tasks, 2)
    cycle = caught.value.cycle
    after = {task.name: task.after for task in tasks}
    assert isinstance(caught.value, PlanError)
    assert len(set(cycle)) == len(cycle) >= 1
    assert cycle[0] == min(cycle)
    for name, following in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        assert following in after[name]
        assert name in str(caught.value)
    return cycle


def test_one_worker_takes_the_most_urgent_task_then_the_first_name():
    tasks = [Task("d", 1), Task("b", 2), Task("c", 1, ("b",)), Task("a", 1)]
    assert plan(tasks, 1) == [Slot("b", 0, 0, 2), Slot("a", 0, 2, 3), Slot("c", 0, 3, 4), Slot("d", 0, 4, 5)]
    assert plan([], 3) == []


def test_free_workers_start_ready_tasks_at_once_from_the_lowest_number():
    tasks = [Task("long", 5), Task("one", 2), Task("two", 2), Task("join", 1, ("one", "two", "one"))]
    assert plan(tasks, 3) == [
        Slot("long", 0, 0, 5),
        Slot("one", 1, 0, 2),
        Slot("two", 2, 0, 2),
        Slot("join", 1, 2, 3),
    ]


def test_urgency_is_the_longest_chain_and_not_the_sum_of_followers():
    tasks = [
        Task("wide", 1),
        *(Task(f"leaf{n}", 2, ("wide",)) for n in range(4)),
        Task("deep", 1),
        Task("mid", 1, ("deep",)),
        Task("tip", 2, ("mid",)),
    ]
    slots = plan(tasks, 1)
    assert [slot.task for slot in slots] == ["deep", "mid", "wide", "leaf0", "leaf1", "leaf2", "leaf3", "tip"]


def test_a_worker_waits_only_when_nothing_is_ready():
    tasks = [Task("a", 4), Task("b", 1), Task("c", 3, ("a",)), Task("d", 2, ("b",)), Task("e", 1, ("d", "a"))]
    assert plan(tasks, 2) == [
        Slot("a", 0, 0, 4),
        Slot("b", 1, 0, 1),
        Slot("d", 1, 1, 3),
        Slot("c", 0, 4, 7),
        Slot("e", 1, 4, 5),
    ]


def test_the_order_of_the_tasks_has_no_influence():
    rng = random.Random(5)  # noqa: S311
    names = [f"t{n:02}" for n in range(40)]
    tasks = [
        Task(name, rng.randrange(1, 6), tuple(rng.sample(names[:index], min(index, rng.randrange(3)))))
        for index, name in enumerate(names)
    ]
    expected = plan(tasks, 3)
    ends = {slot.task: slot.end for slot in expected}
    assert all(
        slot.start >= max((ends[name] for name in task.after), default=0)
        for slot in expected
        for task in tasks
        if task.name == slot.task
    )
    for _ in range(5):
        rng.shuffle(tasks)
        assert plan(iter(tasks), 3) == expected


def test_a_cycle_is_walked_in_the_direction_of_waiting():
    assert cycle_of([Task("c", 1, ("a",)), Task("a", 1, ("b",)), Task("b", 1, ("c",))]) == ["a", "b", "c"]
    assert cycle_of([Task("x", 1), Task("self", 1, ("x", "self"))]) == ["self"]
    tail = [Task("a", 1, ("m",)), Task("m", 1, ("z", "free")), Task("z", 1, ("m",)), Task("free", 1)]
    assert cycle_of([*tail, Task("last", 1, ("z",))]) == ["m", "z"]
    several = [Task("a", 1, ("b",)), Task("b", 1, ("a",)), Task("c", 1, ("d", "a")), Task("d", 1, ("c",))]
    assert cycle_of(several) in (["a", "b"], ["c", "d"])


def test_bad_input_is_named_in_the_order_of_the_checks():
    cyclic = [Task("a", 1, ("a",))]
    with pytest.raises(PlanError):
        plan(cyclic, 0)
    with pytest.raises(PlanError, match="twin"):
        plan([Task("twin", 1, ("ghost",)), Task("twin", 2)], 1)
    with pytest.raises(PlanError, match="lazy"):
        plan([*cyclic, Task("lazy", 0)], 1)
    with pytest.raises(PlanError, match=r"haunted.*ghost|ghost.*haunted") as caught:
        plan([*cyclic, Task("haunted", 1, ("a", "ghost"))], 1)
    assert not isinstance(caught.value, CycleError)


def test_long_chains_work():
    names = [f"n{n:05}" for n in range(5000)]
    chain = [Task(name, 1, (names[index - 1],) if index else ()) for index, name in enumerate(names)]
    slots = plan(reversed(chain), 4)
    assert [slot.task for slot in slots] == names
    assert slots[-1] == Slot(names[-1], 0, 4999, 5000)
    ring = [Task(names[0], 1, (names[-1],)), *chain[1:]]
    assert len(cycle_of(ring)) == 5000
