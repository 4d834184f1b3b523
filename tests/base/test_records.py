"""Data classes and named tuples that are quick to define: the same as Python's own."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
import pickle
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from importlib import import_module
from threading import Barrier
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, get_type_hints

import pytest

import graphc
from graphc.base import records
from graphc.base.records import _generate, dataclass, make_init

T = TypeVar("T")


@dataclass(frozen=True)
class Point:
    """A point."""

    x: int
    y: int = 2
    names: list[str] = field(default_factory=list, compare=False)

    @property
    def total(self) -> int:
        return self.x + self.y


@dataclass(frozen=True)
class Named(Point, Generic[T]):
    label: str = field(default="a", repr=False)

    def __post_init__(self) -> None:
        if not self.label:
            raise ValueError("a label is empty")


@dataclass
class Counter:
    value: int = 0


@dataclass(eq=False)
class Identified:
    value: int = 0


@dataclass(frozen=True, kw_only=True)
class Options:
    fast: bool = False

    def __repr__(self) -> str:
        return "options"


def plain(cls: Any, **options: bool) -> Any:
    """Return the class under Python's own decorator."""
    namespace = {"__annotations__": cls.__annotations__, "__qualname__": cls.__qualname__, "__module__": __name__}
    fields = {f.name: f for f in dataclasses.fields(cls) if f.name in cls.__annotations__}
    defaults = {
        n: field(default_factory=f.default_factory, compare=f.compare)
        if f.default_factory is not dataclasses.MISSING
        else f.default
        for n, f in fields.items()
        if f.default is not dataclasses.MISSING or f.default_factory is not dataclasses.MISSING
    }
    return dataclasses.dataclass(**options)(type(cls.__name__, (), {**namespace, **defaults}))


@pytest.mark.parametrize(
    ("cls", "options"),
    [(Point, {"frozen": True}), (Counter, {}), (Identified, {"eq": False})],
)
def test_classes_behave_like_those_of_python(cls: Any, options: dict[str, bool]):
    other = plain(cls, **options)
    for build in (lambda c: c(3), lambda c: dataclasses.replace(c(3))):
        assert repr(build(cls)) == repr(build(other)) and dataclasses.asdict(build(cls)) == dataclasses.asdict(
            build(other)
        )
    assert str(inspect.signature(cls)) == str(inspect.signature(other)) and cls.__match_args__ == other.__match_args__
    assert (cls(1) == cls(1), cls(1) == cls(2)) == (other(1) == other(1), other(1) == other(2))
    assert (cls.__hash__ is None, cls.__hash__ is object.__hash__) == (
        other.__hash__ is None,
        other.__hash__ is object.__hash__,
    )
    with pytest.raises(TypeError, match=r"__init__\(\) got an unexpected keyword argument 'z'"):
        cls(z=1)


def test_fields_of_frozen_objects_refuse_writes():
    for instance in (Point(1), Named(1)):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
            instance.x = 3  # type: ignore[misc]
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
            del instance.x  # type: ignore[misc]
    assert hash(Point(1)) == hash(Point(1, 2, ["b"]))


def test_derived_classes_have_the_fields_of_their_base():
    named = Named(1, label="b")
    assert [f.name for f in dataclasses.fields(Named)] == ["x", "y", "names", "label"] and named.total == 3
    assert repr(named) == "Named(x=1, y=2, names=[])"
    with pytest.raises(ValueError, match="a label is empty"):
        Named(1, label="")
    match named:
        case Named(x, y):
            assert (x, y) == (1, 2)

    @dataclasses.dataclass(frozen=True)
    class Standard(Named):  # type: ignore[type-arg]
        more: int = 5

    assert Standard(1).more == 5 and dataclasses.replace(Standard(1), more=6).x == 1


def test_methods_of_the_class_stay():
    @dataclass(frozen=True)
    class Equal:
        x: int

        def __eq__(self, other: object) -> bool:
            return True

    assert Equal(1) == Equal(2) and hash(Equal(1)) == hash(Equal(1)) != hash(Equal(2))
    assert repr(Options(fast=True)) == "options" and Options(fast=True) != Options()
    with pytest.raises(TypeError):
        Options(True)  # type: ignore[misc]


FIRST_USES: dict[str, Callable[[Any], object]] = {
    "construction": lambda c: c(1),
    "an unpickled object": lambda c: object.__new__(c).__dict__.update(x=1, y=2, names=[]),
    "equality": lambda c: object.__new__(c) == 1,
    "fields": dataclasses.fields,
    "a copy": lambda c: copy.copy(c(1)),
    "signature": inspect.signature,
}


@pytest.mark.parametrize("use", FIRST_USES)
def test_any_first_use_generates_the_methods(use: str):
    @dataclass(frozen=True)
    class Fresh:
        x: int
        y: int = 2
        names: list[str] = field(default_factory=list)

    FIRST_USES[use](Fresh)
    assert Fresh(1) == Fresh(1, 2, []) and hash(Options()) == hash(Options())


def test_objects_can_be_pickled_and_copied():
    assert pickle.loads(pickle.dumps(Named(1))) == Named(1) == copy.deepcopy(Named(1))


def test_threads_may_use_a_class_first_at_once():
    for _ in range(50):

        @dataclass(frozen=True)
        class Fresh:
            x: int
            y: int = 2

        start = Barrier(4)

        def first_uses(x: int, cls: Any = Fresh, start: Barrier = start) -> tuple[object, ...]:
            start.wait(10)
            instance = cls(x)
            return instance, hash(instance), repr(instance), dataclasses.replace(instance, y=3)

        with ThreadPoolExecutor(4) as pool:
            assert [*pool.map(first_uses, [1] * 4)] == [
                (Fresh(1), hash(Fresh(1)), repr(Fresh(1)), Fresh(1, 3)),
            ] * 4


def test_an_import_generates_no_methods():
    code = """
import dataclasses, sys
count = 0
process = dataclasses._process_class
def counted(*args, **options):
    global count
    count += args[0].__module__ == "graphc.ir.kernel.statements"
    return process(*args, **options)
dataclasses._process_class = counted
import graphc.ir.kernel.statements
print(count)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) == 0


def test_comparison_is_generated_apart_from_construction():
    @dataclass(frozen=True)
    class Pair:
        a: int
        b: int = 1

    assert Pair(1).b == 1
    assert [type(vars(Pair)[n]).__name__ for n in ("__init__", "__eq__")] == ["function", "_Deferred"]
    assert (
        Pair(1) == Pair(1, 1) != Pair(2) and hash(Pair(1)) == hash((1, 1)) and repr(Pair(1)).endswith("Pair(a=1, b=1)")
    )
    params = Pair.__dataclass_params__  # type: ignore[attr-defined]
    assert params.eq and params.repr and params.frozen and params.init


@dataclass(frozen=True, slots=True)
class Slotted:
    x: int
    names: list[str] = field(default_factory=list)


@pytest.mark.parametrize("instance", [Slotted(1, ["a"]), Named(1, 2, ["a"], "b"), Counter(3)])
def test_copies_through_pickle_and_copy_are_equal(instance: Any):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(instance, protocol)) == instance
    deep = copy.deepcopy(instance)
    assert copy.copy(instance) == instance == deep and dataclasses.asdict(deep) == dataclasses.asdict(instance)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace is new in Python 3.13")
def test_copies_with_other_fields():
    assert copy.replace(Point(1), y=3) == Point(1, 3)  # type: ignore[attr-defined]


def records_of_package() -> list[Any]:
    """Return all data classes of the package that generate their methods at first use."""
    for module in pkgutil.walk_packages(graphc.__path__, "graphc."):
        if not module.name.startswith(("graphc.__main__", "graphc.cli.__main__")):
            with contextlib.suppress(ImportError):  # of extras that are not installed
                import_module(module.name)
    modules = [m for name, m in [*sys.modules.items()] if name.startswith("graphc.")]
    found = {c for m in modules for c in vars(m).values() if isinstance(c, type) and "__record__" in vars(c)}
    return sorted(found, key=lambda c: (c.__module__, c.__qualname__))


def test_all_data_classes_of_the_package_are_constructed_as_by_python():
    compared = 0
    for cls in records_of_package():
        own, options = vars(cls)["__record__"]
        if "__init__" not in own and options.get("init", True):
            expected, result = _generate(cls, own, options)["__init__"], make_init(cls)
            assert str(inspect.signature(result)) == str(inspect.signature(expected)), cls
            assert result.__annotations__ == expected.__annotations__ and result.__qualname__ == expected.__qualname__
            compared += 1
    assert compared > 300


def test_fields_are_assigned_as_by_python():
    class Base:
        def __post_init__(self) -> None:
            object.__setattr__(self, "total", sum(vars(self)["parts"]))

    def decorated(decorate: Any) -> Any:
        @decorate(frozen=True)
        class Row(Base):
            kind: ClassVar[str] = "row"
            parts: list[int] = field(default_factory=list)
            name: str = field(default="a", kw_only=True)
            hidden: int = field(default=3, init=False)
            fresh: dict[str, int] = field(default_factory=dict, init=False)

        return Row

    own, other = decorated(dataclass), decorated(dataclasses.dataclass)
    for arguments, names in (((), {}), (([1, 2],), {}), (([4],), {"name": "b"})):
        assert vars(own(*arguments, **names)) == vars(other(*arguments, **names))
    assert own().parts is not own().parts and own().hidden == 3 and own.kind == "row"
    for wrong in (lambda c: c([], "b"), lambda c: c(hidden=1)):
        for cls in (own, other):
            with pytest.raises(TypeError):
                wrong(cls)


class Pair(records.NamedTuple):
    """Two values."""

    x: int
    y: list[Pair] | None = None

    @property
    def total(self) -> int:
        return self.x + len(self.y or ())


class PairOfPython(NamedTuple):
    """Two values."""

    x: int
    y: list[Pair] | None = None

    @property
    def total(self) -> int:
        return self.x + len(self.y or ())


def test_named_tuples_are_those_of_python() -> None:
    ours, expected = Pair(1), PairOfPython(1)
    assert repr(ours) == repr(expected).replace("PairOfPython", "Pair") == "Pair(x=1, y=None)"
    assert ours == expected == (1, None) and ours.total == 1 and Pair(y=[ours], x=2).total == 3
    assert ours._replace(x=4)._asdict() == {"x": 4, "y": None} and pickle.loads(pickle.dumps(ours)) == ours
    same = ("_fields", "_field_defaults", "__doc__", "__module__", "__match_args__", "__bases__")
    assert [getattr(Pair, name) for name in same] == [getattr(PairOfPython, name) for name in same]
    assert Pair.__qualname__ == "Pair" and inspect.signature(Pair).parameters.keys() == {"x", "y"}
    assert get_type_hints(Pair) == get_type_hints(PairOfPython) == {"x": int, "y": list[Pair] | None}
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Pair()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("x: int = 1\n y: int", TypeError),
        ("x: int\n def _replace(self): ...", AttributeError),
        ("x: int\n def __new__(cls): ...", AttributeError),
    ],
)
def test_wrong_named_tuples_are_refused_as_by_python(body: str, error: type[Exception]) -> None:
    for base in (NamedTuple, records.NamedTuple):
        with pytest.raises(error):
            exec(f"from __future__ import annotations\nclass A(base):\n {body}", {"base": base, "__name__": "a"})


def test_a_first_call_defines_no_named_tuples_of_python() -> None:
    code = """
import typing
names, create = [], typing.NamedTupleMeta.__new__
def recorded(cls, name, bases, namespace):
    names.extend([name] if namespace["__module__"].startswith("graphc") else [])
    return create(cls, name, bases, namespace)
typing.NamedTupleMeta.__new__ = recorded
import graphc.front, graphc.calls.function, graphc.calls.quick.pending_program, graphc.interop.onnx.reader
print(names)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
