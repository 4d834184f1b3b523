"""Checkpointing in eager mode: drop the tensors a function saves for its gradient, and compute them again on demand."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.autograd.record import Deferred, Snapshot
from graphc.base import module_path
from graphc.base.errors import GradientError
from graphc.ir.graph.graph import Value
from graphc.tape.grad_mode import enable_grad, is_grad_enabled
from graphc.tape.node import Node
from graphc.tape.saved import saving
from graphc.tensors.journal import Journal
from graphc.tensors.random.generator import default_generator
from graphc.tensors.tensor import Tensor


class _Origin(Node):
    """Placeholder for the history of an argument while the function runs again."""


class _TensorArgument:
    """A tensor argument of the function."""

    def __init__(self, tensor: Any):
        # NOTE: the snapshot goes through the hooks of an enclosing checkpoint, so that this one keeps no memory either.
        self.snapshot = Snapshot(tensor, None, "an argument of a function under checkpoint")
        self.requires_grad = tensor._requires_grad

    def restore(self) -> Any:
        """Return the tensor, without its history."""
        result = Tensor._wrap(self.snapshot.check())
        result._counter = self.snapshot.counter
        if self.requires_grad:
            result._node, result._index, result._requires_grad = _Origin(), 0, True
        return result


class _Slot(Deferred):
    """Placeholder of one saved tensor."""

    def __init__(self, frame: _Frame, counter: list[int] | None):
        self.frame = frame
        self.counter = counter
        self.version = 0 if counter is None else counter[0]
        """Version of the tensor in the forward pass."""
        self.recomputed: Any = None
        """The tensor from the second run."""
        self.saved_version = 0
        """Version of the recomputed tensor when the second run saved it."""

    def tensor(self) -> Any:
        """Return the tensor; run the function a second time if necessary."""
        if self.recomputed is None:
            self.frame.rerun()
        if self.recomputed is None:
            raise self.frame.differs("fewer tensors are saved than before")
        return self.recomputed

    def is_stale(self) -> bool:
        """Check whether the tensor was modified after it was saved."""
        tensor = self.tensor()
        return tensor._counter is not None and tensor._counter[0] != self.saved_version

    def fill(self, tensor: Any) -> None:
        """Store the tensor saved by the second run at this position."""
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
        self.recomputed, self.saved_version = tensor, 0 if tensor._counter is None else tensor._counter[0]


class _Frame:
    """One call of a function under checkpoint."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]):
        self.function = function
        self.title = getattr(function, "__name__", type(function).__name__)
        self.args = [_TensorArgument(a) if isinstance(a, Tensor) else a for a in args]
        self.kwargs = {k: _TensorArgument(a) if isinstance(a, Tensor) else a for k, a in kwargs.items()}
        scope = module_path.scope()
        self.scope = None if scope is None else scope.continued()
        self.journal = Journal()
        self.slots: list[weakref.ref[_Slot]] = []
        self.position = 0
        """Number of tensors saved by the second run so far."""

    def pack(self, tensor: Any) -> Any:
        """Drop a tensor and return a slot for it; values of a trace inside of the function stay as they are."""
        if isinstance(tensor._data, Value):
            return tensor
        slot = _Slot(self, tensor._counter)
        self.slots.append(weakref.ref(slot))
        return slot

    def _repack(self, tensor: Any) -> Any:
        if isinstance(tensor._data, Value):
            return tensor
        if self.position >= len(self.slots):
            raise self.differs("more tensors are saved than before")
        slot = self.slots[self.position]()
        self.position += 1
        if slot is not None:
            slot.fill(tensor)
        return tensor

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any], preserve_rng_state: bool) -> Any:
        """Return the function's result, whose history refers to empty slots."""
        token = saving.set((self.pack, _tensor))
        try:
            with self.journal.opened():
                result = self.function(*args, **kwargs)
        finally:
            saving.reset(token)
        if not preserve_rng_state:
            self.journal.forget(default_generator.state._data)
        return result

    def rerun(self) -> None:
        """Fill the slots still in use."""
        self.position = 0
        args = [a.restore() if isinstance(a, _TensorArgument) else a for a in self.args]
        kwargs = {k: a.restore() if isinstance(a, _TensorArgument) else a for k, a in self.kwargs.items()}
        scope = None if self.scope is None else self.scope.continued()
        token = saving.set((self._repack, lambda tensor: tensor))
        try:
            with module_path.outside(scope), self.journal.rewound(), enable_grad():
                self.function(*args, **kwargs)
        finally:
            saving.reset(token)
        if self.position != len(self.slots):
            raise self.differs(f"{self.position} tensors are saved, not {len(self.slots)} as before")

    def differs(self, what: str) -> GradientError:
        """Build the error for a function that computes something else the second time."""
        return GradientError(
            f"{self.title} under checkpoint did something else when it ran again for the backward pass: {what}",
            remedy="make the function depend only on its arguments, parameters, buffers and graphc's random numbers",
        )


def _tensor(saved: Any) -> Any:
    return saved.tensor() if isinstance(saved, _Slot) else saved


def run(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], preserve_rng_state: bool = True
) -> Any:
    """Call a function whose gradient computes its intermediate values again, and return its results."""
    if not is_grad_enabled():
        return function(*args, **kwargs)
    return _Frame(function, args, kwargs).run(args, kwargs, preserve_rng_state)
