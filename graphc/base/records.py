"""Data classes and named tuples that are quick to define: most classes that a process imports are never used."""

from __future__ import annotations

import collections
import copy
import dataclasses
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphc.base.locks import Lock

_PARAMETERS = "__dataclass_params__"
_METADATA = ("__match_args__", "__dataclass_fields__", _PARAMETERS)
_REPLACE = ("__replace__",) if sys.version_info >= (3, 13) else ()
_NO_METHODS = {"init": False, "repr": False, "eq": False}
_OPTIONS = frozenset({"init", "repr", "eq", "frozen", "kw_only"})
"""Options of data classes whose methods can be generated later."""
_PYTHON = ("builtins", "typing")
"""Modules whose ``__init_subclass__`` may see a class twice."""
_RESERVED = frozenset({"self", "set_field", "FACTORY"})
"""Names in the text of constructors, besides those of default factories."""
_CLASS_VARIABLE = re.compile(r"(typing\.)?ClassVar\b")


class _Factory:
    """Default of a parameter whose field has a ``default_factory``."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


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

    Python compiles the text of up to six methods for each data class, 0.3 to 0.7 ms. A class costs 0.03 ms here, 0.1 ms
    more once it has instances, and 0.2 ms more once they are compared. Python decorates classes with slots or an order
    at once.

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

    cls.__record__ = own, options  # type: ignore[attr-defined]
    groups: list[tuple[tuple[str, ...], Callable[[], dict[str, Any]]]] = [
        (("__init__",), lambda: {"__init__": make_init(cls)}),
        ((*_METADATA, *_REPLACE), lambda: _describe(cls, own, options)),
        (("__repr__",), lambda: _generate(cls, own, {**options, **_NO_METHODS, "repr": True})),
        (("__eq__", "__hash__"), lambda: _generate(cls, own, _comparison(cls, own, options))),
    ]
    for group, generate in groups:
        _defer(cls, [n for n in names if n in group], generate)
    return cls


def _comparison(cls: type, own: dict[str, Any], options: dict[str, bool]) -> dict[str, bool]:
    """Return the options for methods that compare, without those that refuse writes to a frozen object.

    Python allows that only for a class whose bases are not frozen.
    """
    switches = {**options, **_NO_METHODS, "eq": True}
    if options.get("frozen") and own.get("__hash__") is None and not any(map(dataclasses.is_dataclass, cls.__bases__)):
        switches |= {"frozen": False, "unsafe_hash": True}
    return switches


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


def _describe(cls: type, own: dict[str, Any], options: dict[str, bool]) -> dict[str, Any]:
    """Return the fields and the parameters of the data class."""
    generated = _generate(cls, own, {**options, **_NO_METHODS})
    for name in ("init", "repr", "eq"):
        setattr(generated[_PARAMETERS], name, options.get(name, True))
    return generated


def make_init(cls: Any) -> Callable[..., None]:
    """Return the ``__init__`` of a data class, with the parameters of Python's.

    It is one text to compile, where ``dataclasses.dataclass`` has three for a frozen class. Python makes it, or raises
    its errors, for a class of another kind (``_is_simple``).
    """
    fields = _all_fields(cls)
    if fields is None or not _is_simple(cls, fields):
        return _generate(cls, *cls.__record__)["__init__"]
    parameters = {n: f for n, f in fields.items() if f.init}
    names = [n for n, f in parameters.items() if not f.kw_only]
    keywords = [n for n, f in parameters.items() if f.kw_only]
    parameters_text = ", ".join(["self", *map(_parameter, names, map(fields.get, names))])
    parameters_text += "".join([", *", *(f", {_parameter(n, fields[n])}" for n in keywords)]) if keywords else ""
    assigned = [(n, value) for n, f in fields.items() if (value := _value(n, f))]
    is_frozen = cls.__record__[1].get("frozen")
    lines = [f"set_field(self, {n!r}, {value})" if is_frozen else f"self.{n} = {value}" for n, value in assigned]
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    scope: dict[str, Any] = {"__name__": cls.__module__, "set_field": object.__setattr__, "FACTORY": _FACTORY}
    scope |= {f"default_{n}": f.default for n, f in fields.items()}
    scope |= {f"make_{n}": f.default_factory for n, f in fields.items()}
    exec(f"def __init__({parameters_text}):\n " + ("\n ".join(lines) or "pass"), scope)
    init = scope.pop("__init__")
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {**{n: f.type for n, f in parameters.items()}, "return": None}
    return init


def _is_simple(cls: Any, fields: dict[str, Any]) -> bool:
    """Return whether the fields of a class are all that its constructor depends on, and Python accepts them."""
    own, options = cls.__record__
    frozen = options.get("frozen", False)
    if any([n in _RESERVED or (n.startswith("make_") and n.removeprefix("make_") in fields) for n in fields]):
        return False
    if frozen and ("__setattr__" in own or "__delattr__" in own):
        return False
    if any(getattr(base, _PARAMETERS).frozen != frozen for base in cls.__bases__ if dataclasses.is_dataclass(base)):
        return False
    optional = [
        f.default is not dataclasses.MISSING or f.default_factory is not dataclasses.MISSING
        for f in fields.values()
        if f.init and not f.kw_only
    ]
    return optional == sorted(optional) and not any(f.default.__class__.__hash__ is None for f in fields.values())


def _parameter(name: str, description: Any) -> str:
    if description.default_factory is not dataclasses.MISSING:
        return f"{name}=FACTORY"
    return name if description.default is dataclasses.MISSING else f"{name}=default_{name}"


def _value(name: str, description: Any) -> str:
    """Return the text of the value that ``__init__`` gives to a field; empty where it gives none."""
    if description.default_factory is dataclasses.MISSING:
        return name if description.init else ""
    return f"make_{name}() if {name} is FACTORY else {name}" if description.init else f"make_{name}()"


def _all_fields(cls: type) -> dict[str, Any] | None:
    """Return the fields of a data class and its bases by name, as ``dataclasses.Field``; None for Python to find them.

    Python's own data classes may have variables of construction, which they do not list.
    """
    fields: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if "__record__" in vars(base):
            own = _own_fields(cls, *vars(base)["__record__"])
            if own is None:
                return None
            fields |= own
        elif "__dataclass_fields__" in vars(base):
            return None
    return fields


def _own_fields(cls: type, own: dict[str, Any], options: dict[str, bool]) -> dict[str, Any] | None:
    """Return the fields that a base of a data class, or itself, adds to others; None where something is no field with
    the default next to it."""
    fields: dict[str, Any] = {}
    annotations = own.get("__annotations__", {})
    if [n for n, value in own.items() if type(value) is dataclasses.Field and n not in annotations]:
        return None
    for name, annotation in annotations.items():
        text = str(annotation)
        if _CLASS_VARIABLE.match(text):
            continue
        default = own.get(name, dataclasses.MISSING)
        is_inherited = default is dataclasses.MISSING and hasattr(cls, name)
        if is_inherited or "InitVar" in text or "KW_ONLY" in text or "ClassVar" in text:
            return None
        description: Any = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
        if description.kw_only is dataclasses.MISSING:
            description = copy.copy(description)
            description.kw_only = options.get("kw_only", False)
        description.type = annotation
        fields[name] = description
    return fields


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
    names = [
        n for n in ("__init__", "__repr__", "__eq__", "__hash__") if n not in own and options.get(n.strip("_"), True)
    ]
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


class _NamedTupleType(type):
    """Metaclass that makes a named tuple of a class body, as ``typing.NamedTuple`` does, in a third of its 0.2 ms.

    Python parses the annotations of all fields. Here they stay texts, which ``typing.get_type_hints`` parses.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        """Return the class. Raises TypeError for further bases and for a field without a default after one with it."""
        types = namespace.pop("__annotations__", {})
        optional = [field in namespace for field in types]
        if len(bases) > 1 or optional != sorted(optional):
            raise TypeError(f"{name}: a named tuple has one base, and fields with defaults come last")
        defaults = [namespace.pop(field) for field, has_default in zip(types, optional, strict=True) if has_default]
        result: Any = collections.namedtuple(name, types, defaults=defaults, module=namespace.pop("__module__"))
        taken = _OF_NAMED_TUPLES & namespace.keys()
        if taken:
            raise AttributeError(f"{name}: named tuples have {min(taken)} already")
        result.__annotations__ = result.__new__.__annotations__ = types
        for attribute, value in namespace.items():
            setattr(result, attribute, value)
        return result


_OF_NAMED_TUPLES = frozenset({"__new__", "__init__", "__slots__", "__getnewargs__"}) | {
    name for name in vars(collections.namedtuple("_Empty", ())) if not name.startswith("__")
}
_NAMED_TUPLE = type.__new__(_NamedTupleType, "NamedTuple", (), {})


class _NamedTupleBase:
    """Stand-in for the base of named tuples, of which their classes are not derived."""

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type]:
        return (_NAMED_TUPLE,)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from typing import NamedTuple as NamedTuple
else:
    dataclass = _deferred_dataclass
    NamedTuple = _NamedTupleBase()
