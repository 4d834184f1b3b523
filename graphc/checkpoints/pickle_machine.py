"""Restricted reader of pickles: it builds containers, numbers, strings and tensors, and calls nothing else."""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from graphc.base.errors import ArtifactError
from graphc.nn.module_state import StateDict

MAX_BYTES = 1 << 28

_LITERALS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_NUMBERS_AND_TEXTS = frozenset(
    ["BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"]
)
_GETS = frozenset(("GET", "BINGET", "LONG_BINGET"))
_PUTS = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
KEYS = (str, int, float, type(None))
_HINT = "save only tensors, containers, numbers and strings: torch.save(model.state_dict(), path)"


class Token:
    """Intermediate value of a pickle that must not become part of the result."""


class Known(Token):
    """Known name in a pickle: a function that may be called, or a mere token."""

    def __init__(self, name: str, call: Callable[..., Any] | None = None):
        self.name = name
        self.call = call


class Constant(NamedTuple):
    """Known name in a pickle with a plain value."""

    value: Any


class Built:
    """Object whose state follows after its construction; ``set_state`` checks it."""

    def set_state(self, state: Any) -> None:
        """Set the state; raises ArtifactError for an invalid one."""
        raise NotImplementedError


class Machine:
    """Interpreter of the opcodes of one pickle.

    Names of classes and functions are looked up in ``known`` only. Nothing is imported, so a pickle with any other name
    is refused before anything happens. ``persistent`` maps a persistent id to an object.
    """

    def __init__(self, known: Mapping[str, Known | Constant], persistent: Callable[[Any], Any]):
        self.known = known
        self.persistent = persistent
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def load(self, source: Any) -> Any:
        """Return the object of a pickle.

        ``source`` is ``bytes``, or a stream with ``read``, ``readline`` and ``tell``, read up to the end of the pickle.
        Raises ArtifactError with the name of a refused opcode, class or function.
        """
        start = 0 if isinstance(source, bytes) else source.tell()
        try:
            for opcode, argument, position in pickletools.genops(source):
                if (position or 0) - start > MAX_BYTES:
                    raise ArtifactError(f"the pickle has more than {MAX_BYTES} bytes, the limit")
                if opcode.name == "STOP":
                    return self._pop()
                self._step(opcode.name, argument)
        except ArtifactError:
            raise
        except (ValueError, TypeError, IndexError, KeyError, OverflowError, RecursionError, AttributeError) as error:
            raise ArtifactError(f"the pickle is damaged: {type(error).__name__}: {error}") from None
        raise ArtifactError("the pickle is truncated")

    def _step(self, name: str, argument: Any) -> None:
        if name in _NUMBERS_AND_TEXTS:
            self.stack.append(argument)
        elif name in _LITERALS:
            self.stack.append(_LITERALS[name])
        elif name in _PUTS:
            self.memo[int(argument)] = self._top()
        elif name in _GETS:
            self.stack.append(self.memo[int(argument)])
        elif name in _TUPLES:
            count = _TUPLES[name]
            self.stack.append(tuple([self._pop() for _ in range(count)][::-1]))
        else:
            step = _STEPS.get(name)
            if step is None:
                raise ArtifactError(f"the pickle uses opcode {name}, which is refused", remedy=_HINT)
            step(self, argument)

    # ---- the stack

    def _pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise ArtifactError("the pickle is damaged: it takes from an empty stack")
        return self.stack.pop()

    def _top(self) -> Any:
        value = self._pop()
        self.stack.append(value)
        return value

    def _above_mark(self) -> list[Any]:
        if not self.marks:
            raise ArtifactError("the pickle is damaged: there is no mark")
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    # ---- containers

    def _append(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is not list:
            raise ArtifactError(f"the pickle is damaged: it appends to a {type(target).__name__}")
        _check_values(items)
        target.extend(items)

    def _set(self, items: list[Any]) -> None:
        target = self._top()
        if not isinstance(target, dict) or len(items) % 2:
            raise ArtifactError(f"the pickle is damaged: it sets entries of a {type(target).__name__}")
        _check_values(items[1::2])
        for key, value in zip(items[::2], items[1::2], strict=True):
            # NOTE: hashing nested tuples as keys could take forever.
            if not isinstance(key, KEYS):
                raise ArtifactError(f"a dictionary has a key of class {type(key).__name__}", remedy=_HINT)
            target[key] = value

    # ---- names

    def _find(self, name: str) -> None:
        entry = self.known.get(name)
        if entry is None:
            raise ArtifactError(f"it refers to {name}, which is refused", remedy=_HINT)
        self.stack.append(entry.value if isinstance(entry, Constant) else entry)

    def _find_on_stack(self) -> None:
        name, module = self._pop(), self._pop()
        self._find(f"{module}.{name}")

    def _reduce(self) -> None:
        arguments, function = self._pop(), self._pop()
        if not isinstance(function, Known) or function.call is None or not isinstance(arguments, tuple):
            what = function.name if isinstance(function, Known) else f"a {type(function).__name__}"
            raise ArtifactError(f"it calls {what}, which is refused", remedy=_HINT)
        self.stack.append(function.call(*arguments))

    def _build(self) -> None:
        state, target = self._pop(), self._top()
        if isinstance(target, Built):
            target.set_state(state)
            return
        if not isinstance(target, StateDict) or type(state) is not dict or set(state) - {"_metadata"}:
            raise ArtifactError(f"it sets attributes of a {type(target).__name__}, which is refused", remedy=_HINT)
        metadata = state.get("_metadata", {})
        if isinstance(metadata, dict):
            target._metadata = {k: v for k, v in metadata.items() if isinstance(k, str) and isinstance(v, dict)}


def _check_values(values: list[Any]) -> None:
    for value in values:
        if isinstance(value, Token):
            raise ArtifactError(f"it holds {getattr(value, 'name', 'a bare storage')}, which is refused", remedy=_HINT)


def _ignore(machine: Machine, argument: Any) -> None:
    """Ignore protocol numbers and frames, which do not affect the object."""


def _put_next(machine: Machine, argument: Any) -> None:
    machine.memo[len(machine.memo)] = machine._top()


def _pairs(items: list[Any]) -> dict[Any, Any]:
    scratch = Machine({}, lambda pid: None)
    scratch.stack.append({})
    scratch._set(items)
    return scratch.stack[0]


_STEPS: dict[str, Callable[[Machine, Any], None]] = {
    "PROTO": _ignore,
    "FRAME": _ignore,
    "MARK": lambda m, a: m.marks.append(len(m.stack)),
    "EMPTY_DICT": lambda m, a: m.stack.append({}),
    "EMPTY_LIST": lambda m, a: m.stack.append([]),
    "EMPTY_TUPLE": lambda m, a: m.stack.append(()),
    "TUPLE": lambda m, a: m.stack.append(tuple(m._above_mark())),
    "LIST": lambda m, a: m.stack.append(m._above_mark()),
    "DICT": lambda m, a: m.stack.append(_pairs(m._above_mark())),
    "APPEND": lambda m, a: m._append([m._pop()]),
    "APPENDS": lambda m, a: m._append(m._above_mark()),
    "SETITEM": lambda m, a: m._set([m._pop() for _ in range(2)][::-1]),
    "SETITEMS": lambda m, a: m._set(m._above_mark()),
    "MEMOIZE": _put_next,
    "GLOBAL": lambda m, a: m._find(a.replace(" ", ".", 1)),
    "STACK_GLOBAL": lambda m, a: m._find_on_stack(),
    "REDUCE": lambda m, a: m._reduce(),
    "NEWOBJ": lambda m, a: m._reduce(),
    "BUILD": lambda m, a: m._build(),
    "BINPERSID": lambda m, a: m.stack.append(m.persistent(m._pop())),
}
