"""Check that the parser is the author's own, and passes no text to Python's compiler."""

from __future__ import annotations

import ast

FORBIDDEN_NAMES = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_MODULES = {"ast", "importlib", "builtins", "code", "codeop", "subprocess"}


def validate(code: str) -> dict[str, object]:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return {"valid": False, "errors": [f"The module is not valid Python: {error}"]}
    errors = sorted({message for node in ast.walk(tree) for message in _errors_at(node)})
    return {"valid": not errors, "errors": errors}


def _errors_at(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name) and node.id in FORBIDDEN_NAMES:
        return [f"Do not use {node.id}."]
    modules: list[str] = []
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        modules = [node.module or ""]
    return [f"Do not import {name}." for name in modules if name.split(".")[0] in FORBIDDEN_MODULES]
