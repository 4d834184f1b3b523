"""Uses of data classes, common and rare: the results, or the errors, of Python's own decorator."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import typing
import typing as t
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, field
from typing import Any, ClassVar

import pytest

from graphc.base.records import dataclass


def slots(decorate: Any) -> object:
    @decorate(frozen=True, slots=True)
    class Pair:
        x: int
        y: int = 2

    return Pair(1), hasattr(Pair(1), "__dict__"), Pair.__slots__


def slots_of_the_class(decorate: Any) -> object:
    @decorate
    class Pair:
        __slots__ = ("x",)
        x: int

    return Pair(1), hasattr(Pair(1), "__dict__")


def an_order(decorate: Any) -> object:
    @decorate(order=True)
    class Pair:
        x: int

    return Pair(1) < Pair(2), Pair(2) <= Pair(1)


def a_hash_of_writable_objects(decorate: Any) -> object:
    @decorate(unsafe_hash=True)
    class Pair:
        x: int

    return hash(Pair(1)) == hash(Pair(1))


def no_names_for_match(decorate: Any) -> object:
    @decorate(match_args=False)
    class Pair:
        x: int

    return Pair(1), hasattr(Pair, "__match_args__")


def methods_called_by_super(decorate: Any) -> object:
    @decorate(frozen=True)
    class Pair:
        x: int

    class Derived(Pair):
        def __init__(self) -> None:
            super().__init__(4)

        def __repr__(self) -> str:
            return f"derived {super().__repr__()}"

        def __eq__(self, other: object) -> bool:
            return super().__eq__(other)

        def __hash__(self) -> int:
            return super().__hash__() + 1

    return Derived(), Derived() == Derived(), hash(Derived()) == hash(Pair(4)) + 1


def a_hash_taken_by_a_derived_class(decorate: Any) -> object:
    @decorate(frozen=True)
    class Pair:
        x: int

    class Derived(Pair):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = Pair.__hash__

    return hash(Derived(1)) == hash(Pair(1)), Pair.__hash__(Derived(2)) == hash(Pair(2))


def a_method_replaced_before_the_first_use(decorate: Any) -> object:
    @decorate
    class Pair:
        x: int

    def construct(self: Any) -> None:
        self.x = 9

    Pair.__init__ = construct
    return Pair(), [f.name for f in dataclasses.fields(Pair)], Pair() == Pair()


def names_of_methods(decorate: Any) -> object:
    @decorate
    class Pair:
        x: int

    return [getattr(Pair, n).__qualname__ for n in ("__init__", "__eq__", "__repr__")]


def a_frozen_class_from_a_writable_one(decorate: Any) -> object:
    @decorate
    class Pair:
        x: int

    @decorate(frozen=True)
    class Derived(Pair):
        y: int = 1

    return Derived(1)


def a_writable_class_from_a_frozen_one(decorate: Any) -> object:
    @decorate(frozen=True)
    class Pair:
        x: int

    @decorate
    class Derived(Pair):
        y: int = 1

    return Derived(1)


def kinds_of_fields(decorate: Any) -> object:
    @decorate(kw_only=True)
    class Pair:
        x: int = 1

    @decorate
    class Derived(Pair):
        y: int
        hidden: int = field(default=3, init=False, repr=False, compare=False)
        _: KW_ONLY
        z: int = 5
        shared: ClassVar[int] = 3
        first: InitVar[int] = 4

        def __post_init__(self, first: int) -> None:
            self.y += first

    names = [f.name for f in dataclasses.fields(Derived)]
    return Derived(1, x=2), str(inspect.signature(Derived)), names, Derived.shared, Derived.first, Derived(1).hidden


def a_class_of_python_from_a_record(decorate: Any) -> object:
    @decorate(frozen=True)
    class Pair:
        x: int = 1
        names: Any = field(default_factory=list)

    @dataclasses.dataclass(frozen=True)
    class Derived(Pair):
        y: int = 2

    first = Derived()
    assert first.names is not Derived().names and not hasattr(Pair, "names") and Pair.x == 1
    copies = copy.copy(first), copy.deepcopy(first), dataclasses.replace(first, x=5)
    return copies, dataclasses.asdict(first), dataclasses.astuple(first), hash(Derived(names=())), first == Derived()


def a_default_of_the_base(decorate: Any) -> object:
    @decorate
    class Pair:
        x: int = 3

    @decorate
    class Derived(Pair):
        x: int
        y: int = 4

    return Derived()


def names_of_the_constructor(decorate: Any) -> object:
    @decorate(frozen=True)
    class Pair:
        set_field: int
        FACTORY: int = 2

    @decorate
    class Factories:
        make_names: int
        names: list[int] = field(default_factory=list)

    @decorate
    class Selfish:
        self: int
        y: int = 2

    return Pair(1), Factories(1), Factories(1, [2]), Selfish(1)


def a_base_of_python_with_a_variable_of_construction(decorate: Any) -> object:
    @dataclasses.dataclass
    class Base:
        first: InitVar[int]
        x: int = 1

        def __post_init__(self, first: int) -> None:
            self.x = first

    @decorate
    class Derived(Base):
        y: int = 2

    return Derived(5), str(inspect.signature(Derived))


def a_class_variable_by_another_name(decorate: Any) -> object:
    @decorate
    class Pair:
        shared: typing.ClassVar[int] = 1
        other: t.ClassVar[int] = 1
        x: int = 2

    return Pair(7)


def two_bases(decorate: Any) -> object:
    @decorate
    class First:
        x: int = 1

    @decorate
    class Second:
        y: int = 2

    @decorate
    class Both(First, Second):
        z: int = 3

    return Both(), str(inspect.signature(Both))


def a_field_without_a_type(decorate: Any) -> object:
    @decorate
    class Pair:
        x = field(default=1)

    return Pair()


def a_mutable_default(decorate: Any) -> object:
    @decorate
    class Pair:
        x: list[int] = []  # noqa: RUF012

    return Pair()


def a_field_without_a_default_after_one_with_it(decorate: Any) -> object:
    @decorate
    class Pair:
        x: int = 1
        y: int

    return Pair(1, 2)


def writes_by_the_class(decorate: Any) -> object:
    @decorate(frozen=True)
    class Pair:
        x: int

        def __setattr__(self, name: str, value: object) -> None:
            pass

    return Pair(1)


def a_base_that_registers_derived_classes(decorate: Any) -> object:
    registered = []

    class Base:
        def __init_subclass__(cls, **keywords: int) -> None:
            registered.append((cls.__name__, keywords))

    @decorate
    class Pair(Base, flag=1):
        x: int = 2

    return Pair(), registered


def too_many_arguments(decorate: Any) -> object:
    @decorate
    class Pair:
        x: int

    return Pair(1, 2)


USES = [
    slots,
    slots_of_the_class,
    an_order,
    a_hash_of_writable_objects,
    no_names_for_match,
    methods_called_by_super,
    a_hash_taken_by_a_derived_class,
    a_method_replaced_before_the_first_use,
    names_of_methods,
    a_frozen_class_from_a_writable_one,
    a_writable_class_from_a_frozen_one,
    kinds_of_fields,
    a_class_of_python_from_a_record,
    a_default_of_the_base,
    names_of_the_constructor,
    a_base_of_python_with_a_variable_of_construction,
    a_class_variable_by_another_name,
    two_bases,
    a_field_without_a_type,
    a_mutable_default,
    a_field_without_a_default_after_one_with_it,
    writes_by_the_class,
    a_base_that_registers_derived_classes,
    too_many_arguments,
]


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_uses_have_the_results_or_the_error_of_python(use: Callable[[Any], object]):
    def outcome(decorate: Any) -> str:
        try:
            return repr(use(decorate))
        except (TypeError, ValueError) as error:
            return f"{type(error).__name__}: {error}"

    assert outcome(dataclass) == outcome(dataclasses.dataclass)
