"""Symbolic numbers: Python numbers whose value differs from call to call, and a log of computations with them.

A NumberRecord evaluates them in Python before each call, so any function of numbers is allowed. ``base.sizes.size``
has the sizes, integer expressions in a normal form that stay symbolic in the compiled program.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.location import capture
from graphc.base.records import NamedTuple

Number = int | float
KINDS = (int, float)
"""Classes of numbers that can be symbolic. bool is not: Python always asks for its value."""


class NumberOperation(NamedTuple):
    """One operation on numbers, or one comparison, of a trace."""

    result: int
    """Slot of the result."""
    function: Callable[..., Any]
    operands: tuple[int, ...]
    """Their slots."""
    answer: bool | None = None
    """For a comparison: its result, which the trace relies on."""
    place: str = ""
    """For a comparison: the line that made it."""


class NumberRecord:
    """Replay log of a trace's operations and comparisons on symbolic numbers, in order.

    ``replay`` runs them again in Python, so results have the bits, types and errors of a call without compilation.
    """

    def __init__(self, numbers: Sequence[Number] = ()):
        self.given: list[Number] = []
        """The input numbers of this trace, in the order of the arguments of ``replay``."""
        self._places: list[int] = []
        """The slot of each input number."""
        self._slots: list[Any] = []
        """Constants by slot; None for inputs and results."""
        self._roots: list[frozenset[int]] = []
        """Indices of the input numbers that each slot depends on."""
        self.steps: list[NumberOperation] = []
        self.inputs: dict[tuple[int, Any], Any] = {}
        """Values in the graph, by slot and element type, for slots that tensor operations use."""
        self.pinned: dict[int, str] = {}
        """Lines that have used the value of an input number, by index; the trace holds for that value only."""
        self._closed = False
        self.symbols = [self.add(number) for number in numbers]

    # ---- while the trace runs

    def add(self, number: Number) -> Any:
        """Return the symbol of a further input number."""
        self._places.append(slot := len(self._slots))
        self._roots.append(frozenset((len(self.given),)))
        self._slots.append(None)
        self.given.append(number)
        return _symbol(self, slot, number)

    def apply(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Return the result of a function of numbers, symbolic if it is an int or a float."""
        values = [plain(x) for x in operands]
        if self._closed or self._is_pinned(operands):
            return function(*values)
        try:
            result = function(*values)
        # NOTE: any exception: traced code may catch it, so its path depends on the values.
        except Exception:
            self._pin_operands(operands)
            raise
        if type(result) not in KINDS:
            self._pin_operands(operands)
            return result
        return _symbol(self, self._append(function, operands), result)

    def ask(self, function: Callable[..., Any], *operands: Any) -> bool:
        """Return the result of a comparison; calls with another result need another trace."""
        answer = function(*[plain(x) for x in operands])
        if type(answer) is not bool:
            self._pin_operands(operands)
        elif not self._closed and not self._is_pinned(operands):
            self._append(function, operands, answer, str(capture()))
        return answer

    def pin(self, slot: int) -> None:
        """Record a dependency of the trace on the values of the input numbers of a slot."""
        if not self._closed:
            for root in self._roots[slot] - self.pinned.keys():
                self.pinned[root] = str(capture())

    def pin_all(self) -> None:
        """Record a dependency of the trace on the values of all input numbers."""
        for slot in self._places:
            self.pin(slot)

    def known(self, slot: int, dtype: Any, make: Callable[[], Any]) -> Any:
        """Return the graph value of a slot with an element type, made at its first use."""
        if (slot, dtype) not in self.inputs:
            self.inputs[slot, dtype] = make()
        return self.inputs[slot, dtype]

    def __enter__(self) -> NumberRecord:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the trace: remaining symbols behave as plain numbers from now on."""
        self._closed = True
        self.symbols = []

    @property
    def is_open(self) -> bool:
        """Return whether the trace is still running."""
        return not self._closed

    def _is_pinned(self, operands: Sequence[Any]) -> bool:
        return all(self._roots[x._slot] <= self.pinned.keys() for x in operands if is_symbolic(x))

    def _pin_operands(self, operands: Sequence[Any]) -> None:
        for x in operands:
            value(x)

    def _slot(self, operand: Any) -> int:
        if is_symbolic(operand):
            return operand._slot
        self._slots.append(operand)
        self._roots.append(frozenset())
        return len(self._slots) - 1

    def _append(
        self, function: Callable[..., Any], operands: Sequence[Any], answer: bool | None = None, place: str = ""
    ) -> int:
        slots = tuple([self._slot(x) for x in operands])
        self._roots.append(frozenset().union(*[self._roots[i] for i in slots]))
        self._slots.append(None)
        result = len(self._slots) - 1
        self.steps.append(NumberOperation(result, function, slots, answer, place))
        return result

    # ---- after the trace

    @property
    def asked(self) -> dict[int, str]:
        """Input numbers that comparisons depend on, each with the line of the first one."""
        lines: dict[int, str] = {}
        for step in self.steps:
            if step.answer is not None:
                for root in self._roots[step.result]:
                    lines.setdefault(root, step.place)
        return lines

    def replay(self, numbers: Sequence[Number]) -> list[Any] | None:
        """Return all slots for other input numbers, or None if a comparison differs or an operation raises."""
        return None if isinstance(slots := self._replayed(numbers), str) else slots

    def why(self, numbers: Sequence[Number]) -> str:
        """Return the reason why ``replay`` returns None; empty if it does not."""
        return reason if isinstance(reason := self._replayed(numbers), str) else ""

    def _replayed(self, numbers: Sequence[Number]) -> list[Any] | str:
        slots = self._slots.copy()
        for slot, number in zip(self._places, numbers, strict=True):
            slots[slot] = number
        for result, function, operands, answer, place in self.steps:
            try:
                value = function(*[slots[i] for i in operands])
            # NOTE: any exception: the call is traced again, and then raises as it would without compilation.
            except Exception as error:
                return f"an operation on numbers raises {type(error).__name__}: {error}"
            if answer is None:
                slots[result] = value
            elif value is not answer:
                shown = ", ".join(repr(slots[i]) for i in operands)
                return f"{function.__name__}({shown}) is {value}, and was {answer} (asked at {place})"
        return slots


def _power(x: Number, y: Number, kind: type[Any]) -> Number:
    """Return x ** y; raises TypeError if the result is not of class ``kind``, because that depends on the values."""
    result = x**y
    if type(result) is not kind:
        raise TypeError(f"{x} ** {y} is no {kind.__name__}")
    return result


def _int_power(x: Number, y: Number) -> Number:
    return _power(x, y, int)


def _float_power(x: Number, y: Number) -> Number:
    return _power(x, y, float)


def _record_power(record: NumberRecord, x: Any, y: Any) -> Any:
    """Return x ** y, one of which is symbolic; a result that is neither int nor float pins both."""
    is_integer = isinstance(x, int) and isinstance(y, int) and plain(y) >= 0
    try:
        return record.apply(_int_power if is_integer else _float_power, x, y)
    except TypeError:
        return plain(x) ** plain(y)


def _operation(function: Callable[..., Any], reflected: bool = False) -> Callable[..., Any]:
    def method(self: SymbolicNumber, other: Any) -> Any:
        pair = (other, self) if reflected else (self, other)
        if type(other) in _OTHERS:
            return self._record.apply(function, *pair)
        if type(other) is complex:
            return function(*[value(x) for x in pair])
        return NotImplemented

    return method


def _question(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: SymbolicNumber, other: Any) -> Any:
        if type(other) in _OTHERS:
            return self._record.ask(function, self, other)
        return function(self._pinned(), other) if type(other) is complex else NotImplemented

    return method


def _rounding(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: SymbolicNumber, *digits: Any) -> Any:
        return self._record.apply(function, self, *[value(d) for d in digits])

    return method


class SymbolicNumber:
    """Number in a trace whose value other calls may change.

    Arithmetic with numbers and tensors stays symbolic. Comparisons and truth tests give a plain result and are
    recorded. Any other use of the value pins it.

    The class does not derive from float or int, so C code that would read the number calls ``__float__`` or
    ``__index__``. ``isinstance`` sees the class of the number.
    """

    __slots__ = ("_record", "_slot", "_value")

    def __init__(self, record: NumberRecord, slot: int, value: Number):
        self._record = record
        self._slot = slot
        self._value = value

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return type(self._value)

    def _pinned(self) -> Any:
        self._record.pin(self._slot)
        return self._value

    __add__, __radd__ = _operation(operator.add), _operation(operator.add, True)
    __sub__, __rsub__ = _operation(operator.sub), _operation(operator.sub, True)
    __mul__, __rmul__ = _operation(operator.mul), _operation(operator.mul, True)
    __truediv__, __rtruediv__ = _operation(operator.truediv), _operation(operator.truediv, True)
    __floordiv__, __rfloordiv__ = _operation(operator.floordiv), _operation(operator.floordiv, True)
    __mod__, __rmod__ = _operation(operator.mod), _operation(operator.mod, True)
    __lt__, __le__ = _question(operator.lt), _question(operator.le)
    __gt__, __ge__ = _question(operator.gt), _question(operator.ge)
    __eq__, __ne__ = _question(operator.eq), _question(operator.ne)
    __round__ = _rounding(round)
    __floor__, __ceil__, __trunc__ = _rounding(math.floor), _rounding(math.ceil), _rounding(math.trunc)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return pow(self._pinned(), value(other), value(modulus))
        if type(other) is complex:
            return self._pinned() ** other
        return _record_power(self._record, self, other) if type(other) in _OTHERS else NotImplemented

    def __rpow__(self, other: Any) -> Any:
        if type(other) is complex:
            return other ** self._pinned()
        return _record_power(self._record, other, self) if type(other) in _OTHERS else NotImplemented

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other) if type(other) in _OTHERS else NotImplemented

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self) if type(other) in _OTHERS else NotImplemented

    def __neg__(self) -> Any:
        return self._record.apply(operator.neg, self)

    def __pos__(self) -> Any:
        return self._record.apply(operator.pos, self)

    def __abs__(self) -> Any:
        return self._record.apply(operator.abs, self)

    def __bool__(self) -> bool:
        return self._record.ask(operator.truth, self)

    # ---- uses of the value, which pin it

    def __hash__(self) -> int:
        return hash(self._pinned())

    def __int__(self) -> int:
        return int(self._pinned())

    def __float__(self) -> float:
        return float(self._pinned())

    def __complex__(self) -> complex:
        return complex(self._pinned())

    def __repr__(self) -> str:
        return repr(self._pinned())

    def __str__(self) -> str:
        return str(self._pinned())

    def __format__(self, spec: str) -> str:
        return format(self._pinned(), spec)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self._value), (self._pinned(),)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self._value, name):
            raise AttributeError(f"{type(self._value).__name__!r} object has no attribute {name!r}")
        return getattr(self._pinned(), name)

    # ---- numpy, which converts numbers of unknown classes

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self._pinned(), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*value(inputs), **value(kwargs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*value(args), **value(kwargs))


class SymbolicFloat(SymbolicNumber):
    """Symbolic float; bitwise operators are missing."""

    __slots__ = ()


class SymbolicInt(SymbolicNumber):
    """Symbolic int with bitwise operators."""

    __slots__ = ()

    __and__, __rand__ = _operation(operator.and_), _operation(operator.and_, True)
    __or__, __ror__ = _operation(operator.or_), _operation(operator.or_, True)
    __xor__, __rxor__ = _operation(operator.xor), _operation(operator.xor, True)
    __lshift__, __rlshift__ = _operation(operator.lshift), _operation(operator.lshift, True)
    __rshift__, __rrshift__ = _operation(operator.rshift), _operation(operator.rshift, True)

    def __invert__(self) -> Any:
        return self._record.apply(operator.invert, self)

    def __index__(self) -> int:
        return operator.index(self._pinned())


_SYMBOLIC = (SymbolicFloat, SymbolicInt)
_OTHERS = frozenset({bool, int, float, SymbolicFloat, SymbolicInt})


def _symbol(record: NumberRecord, slot: int, number: Number) -> Any:
    return (SymbolicInt if type(number) is int else SymbolicFloat)(record, slot, number)


def is_symbolic(operand: Any) -> bool:
    """Return whether a number is symbolic."""
    return type(operand) in _SYMBOLIC


def plain(operand: Any) -> Any:
    """Return the value of a symbolic number in this call without pinning it; other objects unchanged."""
    return operand._value if is_symbolic(operand) else operand


def value(operand: Any) -> Any:
    """Return ``operand`` with symbolic numbers, also those in tuples, lists and dictionaries, pinned and replaced."""
    if is_symbolic(operand):
        return operand._pinned()
    if type(operand) in (tuple, list):
        return type(operand)([value(x) for x in operand])
    if type(operand) is dict:
        return {k: value(v) for k, v in operand.items()}
    return operand


def place_of(operand: Any) -> tuple[NumberRecord, int]:
    """Return the record of a symbolic number, and its slot there."""
    return operand._record, operand._slot
