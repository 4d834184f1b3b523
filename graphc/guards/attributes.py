"""Recorder of the attributes, variables and functions a trace reads from outside; it stores them as facts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from types import CodeType, FrameType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

from graphc.base.location import capture
from graphc.base.locks import Lock
from graphc.base.mutation_epoch import Members
from graphc.base.values import is_immutable, key_of, parts_of
from graphc.guards import code_reads
from graphc.guards.facts import (
    MISSING,
    Cell,
    ClassAttribute,
    ClassOf,
    Content,
    DictEntry,
    FunctionCode,
    SlotAttribute,
    SpecialMethods,
    class_entry,
)
from graphc.guards.number_reads import ReadPlace, TraceNumbers

_NEVER = frozenset({"__dict__", "__class__", "_is_full_backward_hook", "_compiled", "_has_hooks"})
"""Attributes that are never facts."""
_HEAP_TYPE = 1 << 9

_watched: list[type[Any]] = []
"""Classes all of whose objects are recorded."""
_met: dict[type[Any], int] = {}
"""User classes whose objects a running trace has met, with the number of such traces."""
_lock = Lock()
_running = [0]
"""Number of recording traces in all threads."""


Effect = tuple[dict[str, Any], str, Any]
"""A dictionary, a name in it, and the value that a trace assigned."""


class Reads:
    """Everything that one trace has read and changed."""

    def __init__(self, numbers: TraceNumbers | None = None) -> None:
        self.facts: dict[Any, Any] = {}
        self.numbers = numbers or TraceNumbers()
        """Number attributes whose value each call reads again. They are facts as well until recording ends."""
        self.owners: dict[int, Any] = {}
        """Objects of watched classes whose attributes were read."""
        self.effects: list[Effect] = []
        """Attributes that the trace assigned to immutable values without reading them first."""
        self.compares_identity = False
        """Whether code compared objects by identity, so that it matters which tensor arguments are the same object."""
        self.asks_type = ""
        """The line of a function that called ``type`` on an object."""
        self.pinned_reads: dict[ReadPlace, str] = {}
        """Number attributes that code may have assigned, each with a line; set when recording ends. The trace may have
        read its own value, even an equal one, so the number is fixed."""
        self._before: dict[int, tuple[Any, dict[str, Any], dict[str, Any]]] = {}
        """Owner, dictionary and former content of each object that was met."""
        self._outside: dict[int, Any] = {}
        self._cells: dict[int, Any] = {}
        self._codes: dict[CodeType, None] = {}
        self._functions: dict[Any, list[FunctionType]] = {}
        self._kinds: list[type[Any]] = []
        self._inside: dict[int, Any] = {}
        self._lines: dict[tuple[int, str], str] = {}
        self._stores: dict[str, str] = {}
        """Names of attributes that executed code may assign, each with a line."""

    # ---- objects

    def begin(self, target: Any, modules: Sequence[Any]) -> None:
        """Record the state before the trace: the modules, and everything reachable from the target, which may
        be a user object, a bound method, or a partial."""
        for module in modules:
            self.keep(module)
        self.reach(target, "")

    def note(self, owner: Any, name: str, value: Any) -> Any:
        """Record the first value an attribute had; return it or its symbolic number."""
        key = (id(owner), name)
        if key in self.facts or id(owner) in self._inside:
            return self.numbers.again(key, value)
        if isinstance(value, Members):
            return value  # the mutation epoch counts its changes
        read_at = str(capture())
        self._meet(owner, read_at)
        fields = _fields_of(owner)
        if isinstance(class_entry(type(owner), name), _SLOTS):
            self.facts[key] = SlotAttribute(owner, name, read_at)
        elif fields is not None:
            self.facts[key] = DictEntry(fields, name, f"attribute {name!r} of {type(owner).__name__}", read_at)
        if fields is None or name not in fields:
            self._note_class(type(owner), name, read_at)
        self.reach(value, read_at)
        return self.numbers.read(owner, name, value, self.facts.get(key))

    def _meet(self, owner: Any, read_at: str) -> None:
        if id(owner) in self.owners:
            return
        self.owners[id(owner)] = owner
        self.facts[("class", id(owner))] = ClassOf(owner, read_at, _is_watched(type(owner)))
        key = ("special", type(owner))
        if key not in self.facts:
            self.facts[key] = SpecialMethods(type(owner), read_at)
        self.keep(owner)

    def keep(self, owner: Any) -> None:
        """Copy the attributes an object has now, to detect assignments of the trace. Copy also those of a module's
        descendants too: the trace may call them only after temporarily replacing some attribute."""
        pending = [owner]
        while pending:
            item = pending.pop()
            fields = _fields_of(item)
            if fields is None or id(fields) in self._before:
                continue
            for table in (fields, *[v for v in fields.values() if isinstance(v, Members)]):
                self._before[id(table)] = (item, table, dict(table))
            children = fields.get("_modules")
            pending += children.values() if isinstance(children, Members) else ()

    def _note_class(self, kind: type[Any], name: str, read_at: str) -> Any:
        key = ("of", kind, name)
        if key not in self.facts:
            self.facts[key] = ClassAttribute(kind, name, read_at)
            raw = self.facts[key].value
            self.reach(getattr(raw, "__func__", raw), read_at)
            if isinstance(raw, property):
                self.reach(raw.fget, read_at)
        return self.facts[key].value

    def note_all(self, owner: Any, fields: dict[str, Any]) -> None:
        """Record all attributes of an object whose dictionary is read."""
        if id(owner) not in self._inside:
            self.facts.setdefault(
                ("all", id(owner)), Content(fields, f"attributes of {type(owner).__name__}", str(capture()))
            )

    def born(self, owner: Any) -> None:
        """Forget an object: the trace itself created it, whatever was read of it so far."""
        self._inside[id(owner)] = owner
        self.numbers.born(owner)
        if self.owners.pop(id(owner), None) is None:
            return
        self.facts = {key: fact for key, fact in self.facts.items() if id(owner) not in key}
        self._before = {key: saved for key, saved in self._before.items() if saved[0] is not owner}

    def again(self, owner: Any, name: str) -> None:
        """Record an attribute as it is now: the library itself changed its content, which stays after the trace."""
        if (fact := self.facts.get((id(owner), name))) is not None:
            self.facts[id(owner), name] = DictEntry(fact.table, name, fact.title, fact.read_at)

    def assigning(self, owner: Any, name: str) -> None:
        """Record the line about to assign an attribute."""
        if id(owner) not in self._inside:
            read_at = self._lines.setdefault((id(owner), name), str(capture()))
            self._meet(owner, read_at)

    def knows(self, owner: Any) -> bool:
        """Return whether an object existed before the trace."""
        return id(owner) in self._outside

    def reach(self, value: Any, read_at: str) -> None:
        """Record an object from outside and all objects it refers to."""
        pending = [value]
        while pending:
            item = pending.pop()
            if is_immutable(item) or id(item) in self._outside:
                continue
            self._outside[id(item)] = item
            pending.extend(parts_of(item))
            if self._record(type(item)):
                self._meet(item, read_at)
            else:
                fields = _fields_of(item) if type(item) in _NAMESPACES or _is_of_user(type(item)) else None
                if fields is not None:
                    self.facts[("content", id(item))] = Content(fields, f"a {type(item).__name__}", read_at)
                    pending.append(fields)

    def _record(self, kind: type[Any]) -> bool:
        """Record attribute reads of all objects of a user class; return False if the class does not allow it."""
        if _is_watched(kind):
            return True
        if not _is_of_user(kind) or kind.__getattribute__ not in (object.__getattribute__, _read_known):
            return False
        if kind not in self._kinds:
            with _lock:
                try:
                    _met[kind] = _met.get(kind, 0) + 1
                    kind.__getattribute__ = _read_known  # type: ignore[method-assign,assignment]
                except (TypeError, AttributeError):
                    return False
            self._kinds.append(kind)
        return True

    # ---- functions

    def ran(self, frame: FrameType) -> None:
        """Record the variables a function is about to read."""
        if _recorder.get() is not self:
            return  # a signal handler, which is not traced
        code = frame.f_code
        functions = code_reads.functions_of(frame)
        key: Any = (code, id(frame.f_globals), *map(id, functions))
        if key in self._functions:
            return
        self._functions[key] = functions
        outside = [f for f in functions if code not in self._codes or id(f) in self._outside]
        self.compares_identity = self.compares_identity or code_reads.compares_identity(code)
        if not self.asks_type and code_reads.asks_type(code):
            self.asks_type = f"{code.co_filename}:{code.co_firstlineno}"
        if self.numbers.opened:
            self._stores = {**code_reads.stores_of(code), **self._stores}
        for inner in code_reads.codes_within(code):
            self._codes[inner] = None
        read_at = f"{code.co_filename}:{code.co_firstlineno}"
        for function in outside:
            self.facts[("function", id(function))] = FunctionCode(function, read_at)
            for value in (function.__defaults__, function.__kwdefaults__):
                self.reach(value, read_at)
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
                self._note_cell(cell, name, read_at)
        closure = functions[0].__closure__ if functions else None
        cells = dict(zip(code.co_freevars, closure or (), strict=bool(functions)))
        for variable in code_reads.variables_of(code):
            self._note_variable(variable, frame.f_globals, cells, f"{code.co_filename}:{variable.line}")

    def _note_cell(self, cell: Any, name: str, read_at: str) -> None:
        if id(cell) in self._cells:
            return
        self._cells[id(cell)] = cell
        fact = Cell(cell, f"variable {name!r}", read_at)
        self.facts[("cell", id(cell))] = fact
        self.reach(fact.value, read_at)

    def _note_variable(
        self, variable: code_reads.Variable, names: dict[str, Any], cells: dict[str, Any], read_at: str
    ) -> None:
        if variable.is_global:
            value = self._note_entry(names, variable.name, f"global {variable.name!r}", read_at)
        else:
            cell = self.facts.get(("cell", id(cells.get(variable.name))))
            value = MISSING if cell is None else cell.value
        for name in variable.attributes:
            if isinstance(value, ModuleType):
                if not name.startswith("__") and name in vars(value) and not _is_foreign(value):
                    value = self._note_entry(vars(value), name, f"{value.__name__}.{name}", read_at)
                    continue
                value = vars(value).get(name, MISSING)
            elif isinstance(value, type) and value.__flags__ & _HEAP_TYPE:
                value = self._note_class(value, name, read_at)
            else:
                return

    def _note_entry(self, table: dict[str, Any], name: str, title: str, read_at: str) -> Any:
        key = ("entry", id(table), name)
        if key not in self.facts:
            self.facts[key] = DictEntry(table, name, title, read_at, crowded=True)
            self.reach(self.facts[key].value, read_at)
        return self.facts[key].value

    # ---- the end of recording

    def release(self) -> None:
        """Remove the recording ``__getattribute__`` from the user's classes."""
        with _lock:
            for kind in self._kinds:
                _met[kind] -= 1
                if not _met[kind]:
                    del _met[kind]
                    del kind.__getattribute__
        self._kinds = []

    def settle(self) -> list[str]:
        """End recording and restore the world outside. Return a description of each forbidden change; permitted ones
        are in ``effects``."""
        faults: list[str] = []
        self.pinned_reads = self._assigned_numbers()
        for key, fact in list(self.facts.items()):
            if not fact.holds():
                faults += self._undo(key, fact)
        for owner, table, before in self._before.values():
            faults += self._undo_entries(owner, table, before)
        self._before = {}
        return faults

    def _undo(self, key: Any, fact: Any) -> list[str]:
        if isinstance(fact, DictEntry) and id(fact.table) in self._before and fact.now() is not fact.value:
            return []  # an attribute of an object, which _undo_entries restores
        reason = fact.why()
        if hasattr(fact, "restore"):
            fact.restore()
        return [reason]

    def _undo_entries(self, owner: Any, table: dict[str, Any], before: dict[str, Any]) -> list[str]:
        faults: list[str] = []
        changed = [n for n in {**before, **table} if table.get(n, MISSING) is not before.get(n, MISSING)]
        for name in changed:
            now, then = table.get(name, MISSING), before.get(name, MISSING)
            if key_of(now) == key_of(then):
                continue
            fact = self.facts.get((id(owner), name))
            if self._may_set(table, fact, now):
                self.effects.append((table, name, now))
                if fact is not None and fact.value is not None:
                    del self.facts[id(owner), name]
                continue
            line = self._lines.get((id(owner), name)) or (fact.read_at if fact is not None else "")
            faults.append(f"attribute {name!r} of {type(owner).__name__} is assigned" + (f" at {line}" if line else ""))
        for name in changed:
            if name in before:
                table[name] = before[name]
            else:
                del table[name]
        return faults

    @staticmethod
    def _may_set(table: dict[str, Any], fact: Any, now: Any) -> bool:
        """Return whether each call may repeat the assignment of an attribute: the trace did not read it before, or read
        None."""
        unread = fact is None or fact.value is None or fact.holds()
        return unread and is_immutable(now) and not isinstance(table, Members)

    def _assigned_numbers(self) -> dict[ReadPlace, str]:
        assigned = {}
        for key, read in self.numbers.reads.items():
            line = self._lines.get(key) or self._stores.get(key[1]) or self._stores.get("")
            _, _, before = self._before.get(id(getattr(read.fact, "table", None)), (None, None, {}))
            if not line and key_of(before.get(key[1], read.fact.value)) != read.fact.key:
                line = read.fact.read_at  # assigned unseen, before the trace read it
            if line:
                assigned[read.place] = line
        return assigned

    def changed(self) -> list[str]:
        """Return the descriptions of all broken facts."""
        return [fact.why() for fact in self.facts.values() if not fact.holds()]


def set_again(effects: Sequence[Effect]) -> None:
    """Repeat the assignments of attributes a trace made."""
    for table, name, value in effects:
        if table.get(name) is not value:
            table[name] = value


_SLOTS = (type(FunctionType.__globals__), type(FunctionType.__code__))  # type: ignore[attr-defined]
_NAMESPACES = frozenset({SimpleNamespace, *([sys.modules["argparse"].Namespace] if "argparse" in sys.modules else [])})


def _is_watched(kind: type[Any]) -> bool:
    """Return whether all objects of a class are recorded and their changes counted."""
    return any(base in _watched for base in kind.__mro__)


def _is_of_user(kind: type[Any]) -> bool:
    """Return whether the user wrote a class in Python; enums, exceptions and library classes hold no settings."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    ordinary = kind.__flags__ & _HEAP_TYPE and not issubclass(kind, (type, BaseException, Enum))
    return bool(ordinary) and not code_reads.is_library(file)


def _is_foreign(module: ModuleType) -> bool:
    """Return whether a module belongs to NumPy or the standard library."""
    name = module.__name__.partition(".")[0]
    return name == "numpy" or name in sys.stdlib_module_names


def _fields_of(owner: Any) -> dict[str, Any] | None:
    try:
        return object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return None


_recorder: ContextVar[Reads | None] = ContextVar("graphc_attribute_reads", default=None)


def watch(kind: type[Any]) -> None:
    """Record attribute reads of ``kind`` and its subclasses from now on, in running traces too."""
    with _lock:
        _watched.append(kind)
        if _running[0]:
            setattr(kind, "__getattribute__", _read)  # noqa: B010


def recorder() -> Reads | None:
    """Return the recorder of this thread, or None."""
    return _recorder.get() if _running[0] else None


def born(owner: Any) -> None:
    """Tell the current trace that an object is being created."""
    if (reads := recorder()) is not None:
        reads.born(owner)


def assigning(owner: Any, name: str) -> None:
    """Tell the current trace that an attribute is about to be assigned."""
    if (reads := recorder()) is not None:
        reads.assigning(owner, name)


@contextmanager
def not_recording() -> Iterator[None]:
    """Suspend recording inside of the block."""
    token = _recorder.set(None)
    try:
        yield
    finally:
        _recorder.reset(token)


@contextmanager
def recording(functions: bool = False, numbers: TraceNumbers | None = None) -> Iterator[Reads]:
    """Record in this thread the attributes of watched objects as they are read, and with ``functions`` the variables
    that executed functions refer to. Attribute reads of these classes are slower meanwhile. ``numbers`` lists the
    number attributes that each call reads again."""
    reads = Reads(numbers)
    token = _recorder.set(reads)
    _switch(1)
    try:
        if functions:
            with code_reads.watching(reads.ran):
                yield reads
        else:
            yield reads
    finally:
        _switch(-1)
        _recorder.reset(token)
        reads.release()


def _switch(by: int) -> None:
    with _lock:
        before, _running[0] = _running[0], _running[0] + by
        for kind in _watched:
            if not before:
                setattr(kind, "__getattribute__", _read)  # noqa: B010
            elif not _running[0]:
                del kind.__getattribute__


def _read(owner: Any, name: str) -> Any:
    reads = _recorder.get()
    if reads is None or name in _NEVER:
        value = object.__getattribute__(owner, name)
        if reads is not None and name == "__dict__" and not _asked_by_library():
            reads.note_all(owner, value)
        return value
    return _noted(reads, owner, name)


def _read_known(owner: Any, name: str) -> Any:
    """Record a read like ``_read``, for classes of which only objects from outside are recorded."""
    reads = _recorder.get()
    if reads is None or not reads.knows(owner) or name == "__class__":
        return object.__getattribute__(owner, name)
    if name == "__dict__":
        reads.note_all(owner, value := object.__getattribute__(owner, name))
        return value
    return _noted(reads, owner, name)


def _noted(reads: Reads, owner: Any, name: str) -> Any:
    if name == "__getstate__" and (fields := _fields_of(owner)) is not None:
        reads.note_all(owner, fields)  # copy and pickle read it in C
    try:
        value = object.__getattribute__(owner, name)
    except AttributeError:
        reads.note(owner, name, MISSING)
        raise
    if (id(owner), name) in reads.facts:
        return reads.note(owner, name, value)
    return code_reads.unwatched(reads.note, owner, name, value)


def _asked_by_library() -> bool:
    return code_reads.is_library(sys._getframe(2).f_code.co_filename)
