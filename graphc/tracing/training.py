"""Training inside of a trace: gradients of tensors from outside, and what is done when a call has run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any

import numpy as np

from graphc.base import module_path
from graphc.base.errors import TraceError
from graphc.base.location import capture
from graphc.guards.number_reads import TraceNumbers
from graphc.ir.graph.graph import INPUT
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor


class GradientOf:
    """The gradient of a tensor as the one entry of a table: where each call finds what was there before it."""

    def __init__(self, tensor: Tensor):
        self._tensor = tensor

    def get(self, key: Any, default: Any = None) -> Any:
        """The gradient, or None."""
        return self._tensor._grad


class HasGradient:
    """The fact that a tensor outside had a gradient when a call began, or that it had none."""

    def __init__(self, tensor: Tensor, name: str):
        self._tensor = tensor
        self._had = tensor._grad is not None
        self._name = name

    def holds(self) -> bool:
        """Whether it is as it was."""
        return (self._tensor._grad is not None) is self._had

    def why(self) -> str:
        """What has changed."""
        return (
            f"the gradient of {self._name!r}: {'there is none' if self._had else 'there is one'} when the call begins"
        )


class ApartGradients:
    """The fact that gradients which calls read and write where they lie share no memory."""

    def __init__(self, tensors: Sequence[Tensor]):
        self._tensors = tensors
        self._seen: list[Any] = []
        """Their arrays when ``holds`` looked last and was true."""

    def holds(self) -> bool:
        """Whether they still share none."""
        arrays = [None if t._grad is None else t._grad._data for t in self._tensors]
        if len(arrays) == len(self._seen) and all(map(is_, arrays, self._seen)):
            return True
        places = [_address(array) for array in arrays if array is not None and array.size]
        apart = len(set(places)) == len(places)
        self._seen = arrays if apart else []
        return apart

    def why(self) -> str:
        """What has changed."""
        return "gradients of two parameters share memory"


def _address(array: Any) -> int:
    return array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else id(array)


class _Gradient:
    """The gradient of one tensor from outside in a trace."""

    def __init__(self, tensor: Tensor, image: Tensor, name: str):
        self.tensor = tensor
        self.image = image
        self.before = tensor._grad
        """What it was when the trace began."""
        self.fact = HasGradient(tensor, name)
        self.is_cleared = False
        """Whether it became None before anything was made of it."""


class Training:
    """What a traced function does to gradients of tensors outside and to optimizers.

    A gradient that is there at the start is an argument of the graph once it is used, and written where it lies. A new
    one is a further output of the graph that each call sets as ``grad``; but where the function cleared what was there
    before and an optimizer has used the new one up, nobody needs it: then ``grad`` is None after a call."""

    def __init__(self, numbers: TraceNumbers):
        self.numbers = numbers
        """Where optimizers find what stands for their numbers."""
        self.places: dict[int, tuple[Any, Any]] = {}
        """By identity: the table and the key where each call finds a tensor outside."""
        self.facts: list[Any] = []
        """What else a program depends on."""
        self.after: list[Callable[[], Any]] = []
        """What is done after each call."""
        self._gradients: dict[int, _Gradient] = {}
        self._stepped: set[int] = set()
        self._trained: set[int] = set()
        self._kept: list[Tensor] = []

    @property
    def is_used(self) -> bool:
        """Whether the function has done anything of this."""
        return bool(self._gradients or self.after)

    @property
    def kept(self) -> int:
        """How many gradients are outputs."""
        return len(self._kept)

    def leaf(self, tracer: Any, known: Any, clears: bool) -> Tensor:
        """The image of a captured tensor from outside, whose ``grad`` begins as that of the tensor."""
        image = known.image
        if known.tensor._post_hooks:
            raise TraceError(
                "a hook that runs after a gradient was added to `grad` has none to see in a compiled training function",
                origin=capture(module_path.current_path()).describe(),
                remedy="param.register_hook(hook), which sees the gradient; or compile_step(model, loss, optimizer)",
            )
        if id(image) not in self._gradients:
            name = known.value.node.attrs["path"] if known.value.node.op is INPUT else "a tensor"
            found = self._gradients[id(image)] = _Gradient(known.tensor, image, name)
            self._trained.add(id(known.tensor))
            image._grad = found.before
            if found.before is not None:
                self.bind(tracer, found.before, f"grad.{name}", (GradientOf(known.tensor), 0))
        if clears:
            found = self._gradients[id(image)]
            found.is_cleared |= image._grad is found.before and id(found.before) not in tracer.captured
        return image

    def bind(self, tracer: Any, tensor: Tensor, path: str, place: tuple[Any, Any]) -> None:
        """Makes a tensor outside a state of the graph as soon as it is used, found again at ``place``."""
        if id(tensor) not in self.places:
            self.places[id(tensor)] = place
            tracer.add_names([(tensor, "state", path)])

    def name_of(self, tracer: Any, tensor: Tensor) -> str:
        """The path of a parameter in the graph."""
        node = tracer.captured[id(tensor)].value.node if id(tensor) in tracer.captured else None
        return node.attrs["path"] if node is not None and node.op is INPUT else f"{len(self.places)}"

    def stepped(self, tensors: Iterable[Tensor]) -> None:
        """Notes that an optimizer has used the gradients of these tensors."""
        self._stepped.update(map(id, tensors))

    def finish(self, tracer: Any) -> list[Tensor]:
        """The gradients that are outputs, at the end of the trace; those that lie in memory are written."""
        gradients = []
        self._keep_apart(tracer)
        for found in self._gradients.values():
            self.facts.append(found.fact)
            now = found.image._grad
            if now is found.before:
                continue
            if now is not None and found.before is not None and id(found.before) in tracer.captured:
                with no_grad():
                    tracer.assign(found.before, now)
            elif now is None or (found.is_cleared and id(found.tensor) in self._stepped):
                self.after.append(_Drop(found.tensor))
            else:
                gradients.append(now)
                self._kept.append(found.tensor)
        return gradients

    def _keep_apart(self, tracer: Any) -> None:
        """Gradients that are read or written must lie apart, now and at later calls."""
        known = [g for g in self._gradients.values() if g.before is not None and id(g.before) in tracer.captured]
        apart = ApartGradients([g.tensor for g in known])
        if not apart.holds():
            raise TraceError(
                "the gradients of two parameters share memory, and a compiled training function writes each by itself",
                origin=capture(module_path.current_path()).describe(),
                remedy="param.grad = other.grad.clone(); or optimizer.zero_grad() before the call",
            )
        self.facts.append(apart)

    def is_bound_by(self, tensor: Tensor) -> bool:
        """Whether calls set the gradient of this very tensor, or an optimizer's state that belongs to it."""
        return id(tensor) in self._trained

    def done(self, arrays: Sequence[Any]) -> None:
        """Does what follows a call, which gave these gradients."""
        for tensor, array in zip(self._kept, arrays, strict=True):
            tensor._grad = Tensor._wrap(array)
        for action in self.after:
            action()


class _Drop:
    """Takes the gradient of a tensor away."""

    def __init__(self, tensor: Tensor):
        self._tensor = tensor

    def __call__(self) -> None:
        self._tensor._grad = None


def gradient_outside(name: str) -> TraceError:
    """The error of code that asks for the gradient of a tensor from outside where that cannot be seen."""
    return TraceError(
        f"the grad of a tensor from outside{name and f' {name!r}'} is read, set or added to in a trace",
        origin=capture(module_path.current_path()).describe(),
        remedy="autograd.grad(loss, tensors) inside, backward() and zero_grad() outside; graphc.compile of the whole "
        "function, or compile_step(model, loss, optimizer)",
    )
