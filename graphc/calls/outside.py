"""The world outside of a trace: tensors bound by it, and values read besides its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from graphc.base.errors import HookError
from graphc.base.host_function import HostFunction
from graphc.base.values import key_of
from graphc.calls.bindings import DefaultType, ModuleHooks, Modules, Sharing, Slot, TensorHooks
from graphc.compiler.native_call import unchanged
from graphc.guards.facts import Account, ClassOf, DictEntry, Fact, SpecialMethods
from graphc.ir.graph.graph import input_class, input_path
from graphc.runtime.host_calls import serving
from graphc.tensors.random.generator import PATH as RANDOM
from graphc.tensors.share import SameShare
from graphc.tracing.trace import Traced, is_module


class Outside:
    """The state of the world outside at the time of the trace. Later checks compare with it."""

    def __init__(self, traced: Traced, modules: Modules):
        own = set(map(id, modules.modules))
        met = [m for m in traced.attributes.owners.values() if is_module(m) and id(m) not in own]
        self.modules = every = Modules([*modules.modules, *met]) if met else modules
        """The modules of the function, and those that the trace met."""
        tensors = TensorHooks(a.tensor for a in traced.arguments)
        reads = traced.attributes
        facts = [fact for key, fact in reads.facts.items() if key not in reads.numbers.reads]
        self._counted: list[Fact] = [every, Sharing(every), ModuleHooks(every), tensors, DefaultType()]
        self._counted += [f for f in facts if isinstance(f, ClassOf) and f.counted]
        self._watched = [f for f in facts if not (isinstance(f, ClassOf) and f.counted)]
        self._watched += [*_attributes_of_tensors(traced), *every.tables()]
        numbers = [read.fact for read in reads.numbers.reads.values()]
        self._moving = [fact.table for fact in numbers if isinstance(fact, DictEntry)]
        self._methods = [f for f in facts if isinstance(f, SpecialMethods)]
        self._reads: list[Any] = [
            f for f in (*facts, *numbers) if hasattr(f, "now") and not isinstance(f, SpecialMethods)
        ]
        self._constants = [*traced.constants, *(traced.training.facts if traced.training else ())]
        locations = {**(traced.training.places if traced.training else {}), **every.locations()}
        described = [(a.tensor, input_class(a.value), input_path(a.value)) for a in traced.arguments]
        self.slots = {path: Slot(t, locations.get(id(t)), f"{cls} {path!r}") for t, cls, path in described}
        """The tensors outside that the trace uses, by path."""
        self._constants += [SameShare()] if RANDOM in self.slots else []
        self._counted += [_Same(s) for s in self.slots.values() if s.counted and self._trains(traced, s.tensor())]
        self.written = {input_path(a.value): a.written for a in traced.arguments}

    @staticmethod
    def _trains(traced: Traced, tensor: Any) -> bool:
        return traced.training is not None and traced.training.is_bound_by(tensor)

    def serving(
        self,
        run: Callable[..., Any],
        functions: Sequence[HostFunction],
        state: dict[Any, Any],
        owner: object,
        lasting: bool = False,
    ) -> Callable[..., Any]:
        """Return ``run`` with support for its Python functions, which must not change values read by the trace."""
        served = serving(run, functions, state, owner, lasting)
        if all(function.takes_only or function.lends for function in functions):
            return served

        def call(*args: Any) -> Any:
            with self._unchanged():
                return served(*args)

        return call

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Raise HookError after a call whose Python functions changed an attribute or variable read by the trace.

        Eager mode would have read the new value.
        """
        before = [fact.now() for fact in self._reads]
        yield
        for fact, value in zip(self._reads, before, strict=True):
            now = fact.now()
            if now is not value and key_of(now) != key_of(value):
                raise _changed(f"{fact.title}, {value!r} -> {now!r}")
        for fact in self._methods:
            if not fact.holds():
                raise _changed(fact.title)

    def account(self, more: Sequence[Fact] = ()) -> Account:
        """Return all facts except those about tensors in ``slots``. Each call checks ``more`` too."""
        return Account(self._counted, self._watched, [*more, *self._constants], unchanged, self._moving)


class _Same:
    """Guard: a slot holds the same parameter whose gradient a training function sets."""

    def __init__(self, slot: Slot):
        self._slot, self._tensor = slot, slot.tensor()

    def holds(self) -> bool:
        """Check that it still does."""
        return self._slot.tensor() is self._tensor

    def why(self) -> str:
        """Return what changed."""
        return f"{self._slot.title}: another tensor replaced it"


def _changed(what: str) -> HookError:
    return HookError(
        f"a hook or an opaque function changed a value that the compiled code had already read: {what}; the call used "
        "the old value",
        remedy="change it between calls, or return what forward needs",
    )


_FIELDS = frozenset({"dtype", "persistent"})
"""Names without a leading underscore that the library sets on tensors."""


def _attributes_of_tensors(traced: Traced) -> Iterator[DictEntry]:
    """Yield facts about users' attributes on tensors outside. Reads of tensors are too frequent to record."""
    for tensor in [argument.tensor for argument in (*traced.arguments, *traced.constants)]:
        for name in vars(tensor):
            if name[0] != "_" and name not in _FIELDS:
                yield DictEntry(vars(tensor), name, f"attribute {name!r} of a tensor", crowded=True)
