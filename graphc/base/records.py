"""Data classes whose methods are generated at first use: most classes that a process imports are never used."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphc.base.locks import Lock

_PARAMETERS = "__dataclass_params__"
_METADATA = ("__match_args__", "__dataclass_fields__", _PARAMETERS)
_REPLACE = ("__replace__",) if sys.version_info >= (3, 13) else ()
_CONSTRUCTION = ("__init__", *_METADATA, *_REPLACE)
_COMPARISON = ("__eq__", "__hash__")
_NO_METHODS = {"init": False, "repr": False, "eq": False}
_OPTIONS = frozenset({"init", "repr", "eq", "frozen", "kw_only"})
"""Options of data classes whose methods can be generated later."""
_PYTHON = ("builtins", "typing")
"""Modules whose ``__init_subclass__`` may see a class twice."""


class _Deferred:
    """A generated attribute of a data class before its first use."""

    def __init__(self, cls: type, name: str, generate: Callable[[], None]):
        self._cls, self._name, self._generate = cls, name, generate

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None and self._name == "__hash__":
            return self._hash_later()  # Data classes with a default of this class ask whether it can be hashed.
        self._generate()
        # NOTE: not an attribute of the instance: that may have a method of its own, which calls this one by super().
        attribute = vars(self._cls)[self._name]
        bind = getattr(type(attribute), "__get__", None)
        return attribute if bind is None else bind(attribute, instance, owner)

    def _hash_later(self) -> Callable[[object], int]:
        """Return a method that generates the one of the class when it is called: derived classes may take it."""
        return lambda instance: self.__get__(instance, type(instance))()


def _deferred_dataclass(cls: type | None = None, /, **options: bool) -> Any:
    """Return a data class as ``dataclasses.dataclass`` does, which generates its methods when one of them is used.

    Python compiles the text of up to six methods for each data class, 0.3 to 0.7 ms. A class costs 0.03 ms here, and
    half of that time once it has instances. Python decorates classes with slots or an order at once.

    Two differences: mistakes in fields are reported at the first use, and a class without a docstring has none.
    """
    if cls is None:
        return lambda decorated: _deferred_dataclass(decorated, **options)
    own = dict(vars(cls))
    if not _OPTIONS.issuperset(options) or "__slots__" in own or _is_registered(cls):
        return dataclasses.dataclass(**options)(cls)
    names = _generated(own, options)
    if "__hash__" in names and not options.get("frozen"):
        names.remove("__hash__")
        cls.__hash__ = None  # type: ignore[assignment]
    _set_defaults(cls, own)
    if options.get("frozen"):
        _forbid_writes(cls)

    _defer(cls, [n for n in names if n in _CONSTRUCTION], lambda: _construct(cls, own, options))
    _defer(
        cls,
        [n for n in names if n == "__repr__"],
        lambda: _generate(cls, own, {**options, **_NO_METHODS, "repr": True}),
    )
    _defer(
        cls, [n for n in names if n in _COMPARISON], lambda: _generate(cls, own, {**options, **_NO_METHODS, "eq": True})
    )
    return cls


def _is_registered(cls: type) -> bool:
    """Return whether a base class is told of its derived classes: methods are generated on a second one."""
    return any("__init_subclass__" in vars(base) for base in cls.__mro__[1:] if base.__module__ not in _PYTHON)


def _defer(cls: type, names: Sequence[str], generate: Callable[[], dict[str, Any]]) -> None:
    """Set attributes of a class to those that ``generate`` returns, when one of them is used."""

    def replace() -> None:
        with _generating:
            # NOTE: other threads may use the class, so its attributes are replaced and never missing. Those that
            # somebody has replaced meanwhile stay.
            pending = [n for n in names if isinstance(vars(cls).get(n), _Deferred)]
            generated = generate() if pending else {}
            for name in pending:
                setattr(cls, name, generated[name])

    for name in names:
        setattr(cls, name, _Deferred(cls, name, replace))


def _construct(cls: type, own: dict[str, Any], options: dict[str, bool]) -> dict[str, Any]:
    """Return what construction needs, and the parameters of the whole data class."""
    generated = _generate(cls, own, {**options, "repr": False, "eq": False})
    generated[_PARAMETERS].repr = options.get("repr", True)
    generated[_PARAMETERS].eq = options.get("eq", True)
    return generated


def _generate(cls: type, own: dict[str, Any], options: dict[str, bool]) -> dict[str, Any]:
    """Return the attributes of the data class that Python makes of a class with these attributes."""
    namespace = {n: v for n, v in own.items() if n not in ("__dict__", "__weakref__")}
    # NOTE: a class without a docstring gets its signature as one, which takes longer than its methods.
    namespace["__qualname__"] = cls.__qualname__
    namespace["__doc__"] = own.get("__doc__") or "A data class."
    source = type(cls)(cls.__name__, cls.__bases__, namespace)
    return dict(vars(dataclasses.dataclass(**options)(source)))


def _generated(own: dict[str, Any], options: dict[str, bool]) -> list[str]:
    """Return the attributes that a data class does not define itself."""
    names = [n for n in ("__init__", "__repr__", *_COMPARISON) if n not in own and options.get(n.strip("_"), True)]
    if not options.get("eq", True):
        names = [n for n in names if n not in ("__eq__", "__hash__")]
    elif "__eq__" in own and own["__hash__"] is None:
        names.append("__hash__")
    return [*names, *_METADATA, *_REPLACE]


def _set_defaults(cls: type, own: dict[str, Any]) -> None:
    """Replace descriptions of fields by the defaults that they contain."""
    for name, default in own.items():
        if isinstance(default, dataclasses.Field):
            if default.default is dataclasses.MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, default.default)


def _forbid_writes(cls: type) -> None:
    """Give a class the methods of frozen data classes."""

    def refuse(instance: object, name: str, act: str) -> None:
        if type(instance) is cls or name in cls.__dataclass_fields__:  # type: ignore[attr-defined]
            raise dataclasses.FrozenInstanceError(f"cannot {act} field {name!r}")

    def __setattr__(self: object, name: str, value: object) -> None:
        refuse(self, name, "assign to")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:
        refuse(self, name, "delete")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__  # type: ignore[assignment, method-assign]


_generating = Lock()

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _deferred_dataclass
