"""What a trace relies on besides its arguments: tensors that it binds, and what it has read of the world outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from graphc.base.errors import HookError
from graphc.base.host_function import HostFunction
from graphc.base.values import key_of
from graphc.calls.bindings import DefaultType, ModuleHooks, Modules, Sharing, Slot, TensorHooks
from graphc.compiler.native_call import unchanged
from graphc.guards.facts import Account, ClassOf, Entry, Fact, SpecialMethods
from graphc.ir.graph.graph import input_class, input_path
from graphc.runtime.host_calls import serving
from graphc.tensors.generator import PATH as RANDOM
from graphc.tensors.share import SameShare
from graphc.tracing.trace import Traced, is_module


class Outside:
    """As it was when the trace was made: what is made of it later compares with that."""

    def __init__(self, traced: Traced, modules: Modules):
        known = set(map(id, modules.modules))
        met = [m for m in traced.attributes.owners.values() if is_module(m) and id(m) not in known]
        self.modules = whole = Modules([*modules.modules, *met]) if met else modules
        """Those that were known, and those that the trace has met."""
        tensors = TensorHooks(a.tensor for a in traced.arguments)
        reads = traced.attributes
        facts = [fact for key, fact in reads.facts.items() if key not in reads.numbers.reads]
        self._counted: list[Fact] = [whole, Sharing(whole), ModuleHooks(whole), tensors, DefaultType()]
        self._counted += [f for f in facts if isinstance(f, ClassOf) and f.counted]
        self._watched = [f for f in facts if not (isinstance(f, ClassOf) and f.counted)]
        self._watched += [*_attributes_of_tensors(traced), *whole.tables()]
        numbers = [read.fact for read in reads.numbers.reads.values()]
        self._moving = [fact.table for fact in numbers if isinstance(fact, Entry)]
        self._methods = [f for f in facts if isinstance(f, SpecialMethods)]
        self._reads: list[Any] = [
            f for f in (*facts, *numbers) if hasattr(f, "now") and not isinstance(f, SpecialMethods)
        ]
        self._constants = [*traced.constants, *(traced.training.facts if traced.training else ())]
        places = {**(traced.training.places if traced.training else {}), **whole.places()}
        found = [(a.tensor, input_class(a.value), input_path(a.value)) for a in traced.arguments]
        self.slots = {path: Slot(t, places.get(id(t)), f"{cls} {path!r}") for t, cls, path in found}
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
        """``run`` as a function that calls Python functions, which leave what the trace has read as it is."""
        served = serving(run, functions, state, owner, lasting)
        if all(function.takes_only or function.lends for function in functions):
            return served

        def call(*args: Any) -> Any:
            with self._unchanged():
                return served(*args)

        return call

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Raises HookError behind a call in which Python functions have changed an attribute or a variable that the
        trace has read: eager mode would have read the new value."""
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
        """All facts but those about tensors in ``slots``; ``more`` is looked at with each call."""
        return Account(self._counted, self._watched, [*more, *self._constants], unchanged, self._moving)


class _Same:
    """The fact that a place holds the very parameter whose gradient a training function sets."""

    def __init__(self, slot: Slot):
        self._slot, self._tensor = slot, slot.tensor()

    def holds(self) -> bool:
        """Whether it is still there."""
        return self._slot.tensor() is self._tensor

    def why(self) -> str:
        """What has changed."""
        return f"{self._slot.title}: another tensor has taken its place"


def _changed(what: str) -> HookError:
    return HookError(
        f"a hook or an opaque function has changed what the compiled code had read before: {what}; the call has used "
        "the old value",
        remedy="change it between calls, or return what forward needs",
    )


_FIELDS = frozenset({"dtype", "persistent"})
"""What the library keeps with tensors under names that do not begin with an underscore."""


def _attributes_of_tensors(traced: Traced) -> Iterator[Entry]:
    """What users have attached to tensors outside; reading it is not recorded, for tensors are read all the time."""
    for tensor in [found.tensor for found in (*traced.arguments, *traced.constants)]:
        for name in vars(tensor):
            if name[0] != "_" and name not in _FIELDS:
                yield Entry(vars(tensor), name, f"attribute {name!r} of a tensor", crowded=True)
