"""Checkpoints in eager mode: what a function saves for its gradient is dropped, and computed again when needed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.base import module_path
from graphc.base.errors import GradientError
from graphc.eager.record import Deferred, Snapshot
from graphc.ir.graph.graph import Value
from graphc.tape.grad_mode import enable_grad, is_grad_enabled
from graphc.tape.node import Node
from graphc.tape.saved import saving
from graphc.tensors.generator import default_generator
from graphc.tensors.journal import Journal
from graphc.tensors.tensor import Tensor


class _Origin(Node):
    """What stands for all that an argument was made by, while the function runs again."""


class _Argument:
    """A tensor that the function was called with."""

    def __init__(self, tensor: Any):
        # NOTE: taken through the hooks of whoever is outside, so that a checkpoint in another one is not kept either.
        self.snapshot = Snapshot(tensor, None, "an argument of a function under checkpoint")
        self.requires_grad = tensor._requires_grad

    def again(self) -> Any:
        """The tensor, without its history."""
        result = Tensor._wrap(self.snapshot.check())
        result._counter = self.snapshot.counter
        if self.requires_grad:
            result._node, result._index, result._requires_grad = _Origin(), 0, True
        return result


class _Slot(Deferred):
    """The place of one saved tensor."""

    def __init__(self, frame: _Frame, counter: list[int] | None):
        self.frame = frame
        self.counter = counter
        self.version = 0 if counter is None else counter[0]
        """In forward."""
        self.found: Any = None
        """The tensor that was computed again."""
        self.then = 0
        """Its version when it was saved."""

    def tensor(self) -> Any:
        """The tensor, for which the function runs once more where it has not yet."""
        if self.found is None:
            self.frame.run_again()
        if self.found is None:
            raise self.frame.differs("fewer tensors are saved than before")
        return self.found

    def is_stale(self) -> bool:
        """Whether the tensor was written to after it was saved."""
        found = self.tensor()
        return found._counter is not None and found._counter[0] != self.then

    def fill(self, tensor: Any) -> None:
        """Takes what the second run saved in this place."""
        counter = tensor._counter
        outside = counter is not None and counter is self.counter
        if outside and self.frame.journal.holds(counter):
            tensor = Tensor._wrap(tensor._data.copy())
        elif outside and counter is not None and counter[0] != self.version:
            raise GradientError(
                f"a tensor of {tensor.dtype.name}{list(tensor.shape)} that {self.frame.title} reads under checkpoint "
                "was modified by an in-place operation before the backward pass, which computes with it again",
                remedy="write to it after the backward pass, or pass a clone()",
            )
        self.found, self.then = tensor, 0 if tensor._counter is None else tensor._counter[0]


class _Frame:
    """One call of a function under checkpoint."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]):
        self.function = function
        self.title = getattr(function, "__name__", type(function).__name__)
        self.args = [_Argument(a) if isinstance(a, Tensor) else a for a in args]
        self.kwargs = {k: _Argument(a) if isinstance(a, Tensor) else a for k, a in kwargs.items()}
        scope = module_path.scope()
        self.scope = None if scope is None else scope.continued()
        self.journal = Journal()
        self.slots: list[weakref.ref[_Slot]] = []
        self.places = 0
        """How many tensors the second run has saved so far."""

    def pack(self, tensor: Any) -> Any:
        """A place for a tensor, which is dropped; values of a trace that runs inside stay as they are."""
        if isinstance(tensor._data, Value):
            return tensor
        slot = _Slot(self, tensor._counter)
        self.slots.append(weakref.ref(slot))
        return slot

    def _repack(self, tensor: Any) -> Any:
        if isinstance(tensor._data, Value):
            return tensor
        if self.places >= len(self.slots):
            raise self.differs("more tensors are saved than before")
        slot = self.slots[self.places]()
        self.places += 1
        if slot is not None:
            slot.fill(tensor)
        return tensor

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any], preserve_rng_state: bool) -> Any:
        """The function's result, whose history leads to empty places."""
        token = saving.set((self.pack, _tensor))
        try:
            with self.journal.opened():
                result = self.function(*args, **kwargs)
        finally:
            saving.reset(token)
        if not preserve_rng_state:
            self.journal.forget(default_generator.state._data)
        return result

    def run_again(self) -> None:
        """Fills the places that somebody still asks for."""
        self.places = 0
        args = [a.again() if isinstance(a, _Argument) else a for a in self.args]
        kwargs = {k: a.again() if isinstance(a, _Argument) else a for k, a in self.kwargs.items()}
        scope = None if self.scope is None else self.scope.continued()
        token = saving.set((self._repack, lambda tensor: tensor))
        try:
            with module_path.outside(scope), self.journal.rewound(), enable_grad():
                self.function(*args, **kwargs)
        finally:
            saving.reset(token)
        if self.places != len(self.slots):
            raise self.differs(f"{self.places} tensors are saved, not {len(self.slots)} as before")

    def differs(self, what: str) -> GradientError:
        """The error of a function that does not do the same again."""
        return GradientError(
            f"{self.title} under checkpoint did something else when it ran again for the backward pass: {what}",
            remedy="a function that depends on its arguments, parameters, buffers and graphc's random numbers only",
        )


def _tensor(kept: Any) -> Any:
    return kept.tensor() if isinstance(kept, _Slot) else kept


def run(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], preserve_rng_state: bool = True
) -> Any:
    """What the function returns, for a gradient that computes its intermediate values again."""
    if not is_grad_enabled():
        return function(*args, **kwargs)
    return _Frame(function, args, kwargs).run(args, kwargs, preserve_rng_state)
