"""Data classes whose methods are generated at first use: most classes that a process imports are never used."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphc.base.locks import Lock

_PARAMETERS = "__dataclass_params__"
_CONSTRUCTION = ("__init__", "__match_args__", "__dataclass_fields__", _PARAMETERS)
_COMPARISON = ("__eq__", "__hash__")
_NO_METHODS = {"init": False, "repr": False, "eq": False}


class _Deferred:
    """A generated attribute of a data class before its first use."""

    def __init__(self, name: str, generate: Callable[[], None]):
        self._name, self._generate = name, generate

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None and self._name == "__hash__":
            return hash  # Data classes with a default of this class ask whether it can be hashed.
        self._generate()
        return getattr(owner if instance is None else instance, self._name)


def _deferred_dataclass(cls: type | None = None, /, **options: bool) -> Any:
    """Return a data class as ``dataclasses.dataclass`` does, which generates its methods when one of them is used.

    Python compiles the text of up to six methods for each data class, 0.3 to 0.7 ms. A class costs 0.03 ms here, and
    half of that time once it has instances.
    """
    if cls is None:
        return lambda decorated: _deferred_dataclass(decorated, **options)
    own = dict(vars(cls))
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


def _defer(cls: type, names: Sequence[str], generate: Callable[[], dict[str, Any]]) -> None:
    """Set attributes of a class to those that ``generate`` returns, when one of them is used."""

    def replace() -> None:
        with _generating:
            if isinstance(vars(cls)[names[0]], _Deferred):
                # NOTE: other threads may use the class, so its attributes are replaced and never missing.
                generated = generate()
                for name in names:
                    setattr(cls, name, generated[name])

    for name in names:
        setattr(cls, name, _Deferred(name, replace))


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
    return [*names, "__match_args__", "__dataclass_fields__", _PARAMETERS]


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
