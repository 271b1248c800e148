"""Reading the source for its external effects, and for the failpoints that stand around them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORKER = Path(__file__).resolve().parents[1] / "worker"
# The packages whose effects a crash may interrupt. The sandbox is not ours to kill here, and commands that
# prepare a machine (embedded server, settings) are safe by construction: each writes aside and renames.
WATCHED = ("pipeline", "fleet", "recovery", "telegram", "workspace", "store")
FILE_EFFECTS = {
    "mkdir",
    "rmdir",
    "rmtree",
    "unlink",
    "write_text",
    "write_bytes",
    "rename",
    "hardlink_to",
    "touch",
}
OS_EFFECTS = {"open", "write", "pwrite", "ftruncate", "replace", "remove", "link"}
# Where raw transactions and raw sends live, each behind a bracketed door.
DOORS = {"store/database.py", "telegram/session.py", "telegram/line.py"}
NOT_WATCHED = {"store/embedded"}


@dataclass(frozen=True, slots=True)
class Effect:
    where: str
    what: str
    bracketed: bool


def sources() -> Iterator[tuple[str, ast.Module]]:
    for package in WATCHED:
        for path in sorted((WORKER / package).rglob("*.py")):
            name = path.relative_to(WORKER).as_posix()
            if not any(name.startswith(prefix) for prefix in NOT_WATCHED):
                yield name, ast.parse(path.read_text())


def effects() -> Iterator[Effect]:
    """Every file operation, and every raw commit or send outside the doors."""
    for name, tree in sources():
        yield from _effects_in(name, tree, bracketed=False)


def _effects_in(name: str, node: ast.AST, *, bracketed: bool) -> Iterator[Effect]:
    if isinstance(node, ast.With | ast.AsyncWith):
        bracketed = bracketed or any(_is_bracket(item.context_expr) for item in node.items)
    what = _effect_of(node)
    if what is not None and not (name in DOORS and what in {"commit", "send"}):
        yield Effect(f"{name}:{node.lineno}", what, bracketed)
    for child in ast.iter_child_nodes(node):
        yield from _effects_in(name, child, bracketed=bracketed)


def _is_bracket(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Call) and ast.unparse(expression.func) == "faults.around"


def _effect_of(node: ast.AST) -> str | None:
    """The effect of this node: a call of it, or handing the function to a thread."""
    if isinstance(node, ast.Attribute):
        owner = ast.unparse(node.value)
        if owner == "os" and node.attr in OS_EFFECTS:
            return f"os.{node.attr}"
        if node.attr in FILE_EFFECTS:
            return node.attr
        if (node.attr, owner.rsplit(".", 1)[-1]) in {("commit", "connection"), ("send", "connection")}:
            return node.attr
    return None


def transaction_names() -> list[tuple[str, str]]:
    """(where, name) of every transaction; the name is empty where it is not a literal."""
    found = []
    for name, tree in sources():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "transaction"
                and node.args
            ):
                argument = node.args[0]
                literal = argument.value if isinstance(argument, ast.Constant) else ""
                found.append((f"{name}:{node.lineno}", literal))
    return found


def point_names() -> set[str]:
    """Every failpoint that has a name of its own in the source."""
    points = {f"db.{name}" for _, name in transaction_names()}
    for _, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"faults.around", "faults.reach"}:
                argument = node.args[0]
                if isinstance(argument, ast.Constant):
                    points.add(argument.value)
    return points
