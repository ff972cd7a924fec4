from __future__ import annotations

from collections import deque
from typing import Any


class DefinitionError(ValueError):
    pass


class Node:
    def __init__(self, definition: dict[str, Any], name: str = "", parent: Node | None = None) -> None:
        self.definition = definition
        self.parent = parent
        self.path = f"{parent.path}.{name}" if parent and parent.path else name
        self.last: Node | None = None
        states, initial = definition.get("states"), definition.get("initial")
        if bool(states) != (initial is not None) or (states and initial not in states):
            raise DefinitionError(f"states and initial state of '{self.path}' do not fit")
        for child in states or {}:
            if not child or set(child) & set(".#"):
                raise DefinitionError(f"not a name: '{child}'")
        self.children = {child: Node(inner, child, self) for child, inner in (states or {}).items()}

    @property
    def initial(self) -> Node | None:
        return self.children[self.definition["initial"]] if self.children else None

    def lineage(self) -> list[Node]:
        """Returns the enclosing states and this one, outermost first, without the machine."""
        return [*self.parent.lineage(), self] if self.parent else []

    def rules(self, event: str) -> list[dict[str, Any]]:
        rules = self.definition.get("on", {}).get(event, [])
        return [
            {"target": rule} if isinstance(rule, str) else rule
            for rule in (rules if isinstance(rules, list) else [rules])
        ]


class Machine:
    def __init__(self, definition: dict[str, Any], context: Any = None) -> None:
        self.context = context
        self._root = Node(definition)
        self._check(self._root)
        self._active = self._root
        self._queue: deque[tuple[str, Any]] = deque()
        self._busy = True
        self._guarded(lambda: self._enter(self._innermost(self._root), self._root, None))

    @property
    def state(self) -> str:
        return self._active.path

    def is_in(self, path: str) -> bool:
        return any(node.path == path for node in self._active.lineage())

    def send(self, event: str, data: Any = None) -> bool | None:
        if self._busy:
            self._queue.append((event, data))
            return None
        self._busy = True
        return self._guarded(lambda: self._handle(event, data))

    def _guarded(self, work: Any) -> bool | None:
        try:
            answer: bool | None = work()
            while self._queue:
                self._handle(*self._queue.popleft())
        finally:
            self._queue.clear()
            self._busy = False
        return answer

    def _handle(self, event: str, data: Any) -> bool:
        for node in [*reversed(self._active.lineage()), self._root]:
            for rule in node.rules(event):
                if "when" not in rule or rule["when"](self, data):
                    self._take(node, rule, data)
                    return True
        return False

    def _take(self, owner: Node, rule: dict[str, Any], data: Any) -> None:
        if "target" not in rule:
            self._act(rule.get("do"), data)
            return
        goal, leaf = self._goal(rule["target"])
        common = self._common(owner, goal)
        left = [node for node in self._active.lineage() if common in (self._root, *node.lineage()[:-1])]
        for node in reversed(left):
            self._act(node.definition.get("exit"), data)
            node.last = self._active
        self._act(rule.get("do"), data)
        self._enter(leaf, common, data)

    def _enter(self, leaf: Node, within: Node, data: Any) -> None:
        self._active = leaf
        entered = [node for node in leaf.lineage() if within in (self._root, *node.lineage()[:-1])]
        for node in entered:
            self._act(node.definition.get("enter"), data)

    def _goal(self, target: str) -> tuple[Node, Node]:
        path, _, memory = target.partition("#")
        goal = self._find(path)
        return goal, goal.last if memory and goal.last else self._innermost(goal)

    def _common(self, owner: Node, goal: Node) -> Node:
        around = [self._root, *goal.lineage()[:-1]]
        return [node for node in [self._root, *owner.lineage()[:-1]] if node in around][-1]

    def _innermost(self, node: Node) -> Node:
        while node.initial:
            node = node.initial
        return node

    def _act(self, action: Any, data: Any) -> None:
        if action:
            action(self, data)

    def _find(self, path: str) -> Node:
        node = self._root
        for name in path.split("."):
            if name not in node.children:
                raise DefinitionError(f"there is no state '{path}'")
            node = node.children[name]
        return node

    def _check(self, node: Node) -> None:
        for event in node.definition.get("on", {}):
            for rule in node.rules(event):
                self._check_target(rule.get("target"))
        for child in node.children.values():
            self._check(child)

    def _check_target(self, target: str | None) -> None:
        if target is None:
            return
        path, sign, memory = target.partition("#")
        goal = self._find(path)
        if sign and (memory != "last" or not goal.children):
            raise DefinitionError(f"there is no such memory: '{target}'")
