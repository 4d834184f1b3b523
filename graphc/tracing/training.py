"""Training inside of a trace: gradients of tensors from outside, and actions after each call."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import is_
from typing import Any, Protocol

import numpy as np

from graphc.base import module_path
from graphc.base.errors import ArgumentError, HookError, TraceError
from graphc.base.location import capture
from graphc.ir.graph.graph import INPUT, Value
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front


class CapturedTensor(Protocol):
    """A tensor from outside of the trace with the traced tensor for it; see ``tracer.Captured``."""

    @property
    def tensor(self) -> Tensor: ...

    @property
    def value(self) -> Value: ...

    @property
    def image(self) -> Tensor: ...


class GradientTracer(Protocol):
    """The part of ``tracer.Tracer`` used here; that module imports this one."""

    @property
    def captured(self) -> Mapping[int, CapturedTensor]: ...

    def add_names(self, named: Iterable[tuple[Tensor, str, str]]) -> None: ...

    def assign(self, tensor: Tensor, value: Tensor) -> None: ...

    def local(self, tensor: Any) -> Any: ...

    def run_hook(self, hook: Callable[[Tensor], Any], gradient: Tensor, name: str) -> Any: ...


class PassedNumbers(Protocol):
    """Numbers that calls of a program pass; see ``optim.settings.GivenNumbers``."""

    def add(self, numbers: Iterable[Any]) -> None: ...

    def keys(self) -> list[Any]: ...

    def arrays(self) -> list[np.ndarray]: ...


class GradientOf:
    """The gradient of a tensor as a table with one entry, through which each call finds the present gradient."""

    def __init__(self, tensor: Tensor):
        self._tensor = tensor

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the gradient, or None."""
        return self._tensor._grad


class HasGradient:
    """The fact that a tensor outside did or did not have a gradient when a call began."""

    def __init__(self, tensor: Tensor, name: str):
        self._tensor = tensor
        self._had = tensor._grad is not None
        self._name = name

    def holds(self) -> bool:
        """Return whether this still holds."""
        return (self._tensor._grad is not None) is self._had

    def why(self) -> str:
        """Describe the change."""
        return f"the gradient of {self._name!r}: {'absent' if self._had else 'present'} when the call begins"


class ApartGradients:
    """The fact that gradients which calls read and write in place share no memory."""

    def __init__(self, tensors: Sequence[Tensor]):
        self._tensors = tensors
        self._seen: list[Any] = []
        """Their arrays when ``holds`` last returned True."""

    def holds(self) -> bool:
        """Return whether they still share no memory."""
        arrays = [None if t._grad is None else t._grad._data for t in self._tensors]
        if len(arrays) == len(self._seen) and all(map(is_, arrays, self._seen)):
            return True
        addresses = [_address(array) for array in arrays if array is not None and array.size]
        disjoint = len(set(addresses)) == len(addresses)
        self._seen = arrays if disjoint else []
        return disjoint

    def why(self) -> str:
        """Describe the change."""
        return "gradients of two parameters share memory"


def _address(array: Any) -> int:
    return array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else id(array)


class _Gradient:
    """The gradient of one tensor from outside during a trace."""

    def __init__(self, tensor: Tensor, image: Tensor, name: str):
        self.tensor = tensor
        self.image = image
        self.before = tensor._grad
        """The gradient when the trace began."""
        self.fact = HasGradient(tensor, name)
        self.is_cleared = False
        """Whether the function set it to None before using it."""


class Training:
    """Effects of a traced function on the gradients of tensors outside and on optimizers.

    A gradient that exists at the start becomes an argument of the graph once it is used, and is written in place. A new
    one is a further output of the graph, which each call sets as ``grad``. If the function cleared the former gradient
    and an optimizer has used the new one, ``grad`` is None after a call instead.
    """

    def __init__(self, checks: bool = False):
        """With ``checks``, the values that ``first_nan`` checks become further outputs of the graph."""
        self._checks = checks
        self._finite: dict[Value, None] = {}
        """Values that must be finite."""
        self._instead: dict[Value, Value] = {}
        """For a value, the one that is checked in place of it."""
        self.overflowing: set[str] = set()
        """Paths of gradients that may be infinite or NaN: their optimizer then discards the update."""
        self.optimizers: list[Any] = []
        """The optimizers that update parameters, in order."""
        self.places: dict[int, tuple[Any, Any]] = {}
        """By identity: the table and the key under which each call finds a tensor outside."""
        self.facts: list[Any] = []
        """Further facts that the program depends on."""
        self.after: list[Callable[[], Any]] = []
        """Actions after each call."""
        self.step: Any = None
        """The function of a training step that is traced; None for other functions."""
        self.passed: PassedNumbers | None = None
        """Numbers of optimizers that each call passes after its other inputs, if there are any."""
        self.memory: dict[Any, Any] = {}
        """Results that optimizers and loss scalers keep during the trace."""
        self._gradients: dict[int, _Gradient] = {}
        self._stepped: set[int] = set()
        self._trained: set[int] = set()
        self._kept: list[Tensor] = []

    @property
    def is_used(self) -> bool:
        """Return whether the function has touched any gradient or optimizer."""
        return bool(self._gradients or self.after or self.step)

    @property
    def kept(self) -> int:
        """The number of gradients among the outputs."""
        return len(self._kept)

    @property
    def checked(self) -> int:
        """The number of values to check, which are the last outputs."""
        return len(self._finite)

    def require_finite(self, tracer: GradientTracer, tensors: Iterable[Any]) -> None:
        """Let ``first_nan`` check that tensors are finite now."""
        if self._checks:
            values: list[Value] = [tracer.local(t)._data for t in tensors]
            self._finite |= {self._instead.get(v, v): None for v in values}

    def check_instead(self, tracer: GradientTracer, tensors: Iterable[Any], other: Any) -> None:
        """Let ``first_nan`` check ``other`` in place of tensors: it is finite only where they all are."""
        if self._checks:
            self._instead.update((tracer.local(t)._data, tracer.local(other)._data) for t in tensors)

    def leaf(self, tracer: GradientTracer, captured: CapturedTensor, clears: bool) -> Tensor:
        """Return the image of a captured tensor from outside, whose ``grad`` starts with the tensor's gradient."""
        image = captured.image
        if id(image) not in self._gradients:
            image._post_hooks = hooks_after_accumulation(tracer, captured.tensor)
            name = captured.value.node.attrs["path"] if captured.value.node.op is INPUT else "a tensor"
            gradient = self._gradients[id(image)] = _Gradient(captured.tensor, image, name)
            self._trained.add(id(captured.tensor))
            image._grad = gradient.before
            if gradient.before is not None:
                self.bind(tracer, gradient.before, f"grad.{name}", (GradientOf(captured.tensor), 0))
        if clears:
            gradient = self._gradients[id(image)]
            gradient.is_cleared |= image._grad is gradient.before and id(gradient.before) not in tracer.captured
        return image

    def bind(
        self, tracer: GradientTracer, tensor: Tensor, path: str, lookup: tuple[Any, Any], cls: str = "state"
    ) -> None:
        """Register a tensor outside as an argument of the graph, bound on first use; each call finds it at
        ``lookup``."""
        if id(tensor) not in self.places:
            self.places[id(tensor)] = lookup
            tracer.add_names([(tensor, cls, path)])

    def name_of(self, tracer: GradientTracer, tensor: Tensor) -> str:
        """Return the path of a parameter in the graph."""
        node = tracer.captured[id(tensor)].value.node if id(tensor) in tracer.captured else None
        return node.attrs["path"] if node is not None and node.op is INPUT else f"{len(self.places)}"

    def stepped(self, tensors: Sequence[Tensor]) -> None:
        """Note that an optimizer has used the gradients of these tensors, and updates them."""
        self._stepped.update(map(id, tensors))
        self._trained.update(map(id, tensors))

    def finish(self, tracer: GradientTracer) -> list[Tensor]:
        """Finish the trace: write the gradients updated in place. Return the others, then the values to check, as
        outputs."""
        gradients = []
        self._keep_apart(tracer)
        for gradient in self._gradients.values():
            self.facts.append(gradient.fact)
            present = gradient.image._grad
            if present is gradient.before:
                continue
            if present is not None and gradient.before is not None and id(gradient.before) in tracer.captured:
                with no_grad():
                    tracer.assign(gradient.before, present)
            elif present is None or (gradient.is_cleared and id(gradient.tensor) in self._stepped):
                self.after.append(_Drop(gradient.tensor))
            else:
                gradients.append(present)
                self._kept.append(gradient.tensor)
                if id(gradient.tensor) not in self._stepped:
                    self.require_finite(tracer, [present])
        return [*gradients, *map(Tensor._wrap, self._finite)]

    def _keep_apart(self, tracer: GradientTracer) -> None:
        """Raise TraceError if gradients read or written share memory; add the fact for later calls."""
        bound = [g for g in self._gradients.values() if g.before is not None and id(g.before) in tracer.captured]
        if not bound:
            return
        disjoint = ApartGradients([g.tensor for g in bound])
        if not disjoint.holds():
            raise TraceError(
                "the gradients of two parameters share memory, and a compiled training function writes each by itself",
                origin=capture(module_path.current_path()).describe(),
                remedy="separate them: param.grad = other.grad.clone(); or call optimizer.zero_grad() before",
            )
        self.facts.append(disjoint)

    def is_bound_by(self, tensor: Tensor) -> bool:
        """Return whether calls set the gradient of this tensor or of the parameter whose optimizer state it is."""
        return id(tensor) in self._trained

    def done(self, arrays: Sequence[Any]) -> None:
        """Store the gradients a call returned, and run the actions after it."""
        for tensor, array in zip(self._kept, arrays, strict=True):
            tensor._grad = Tensor._wrap(array)
        for action in self.after:
            action()


def hooks_after_accumulation(tracer: GradientTracer, param: Tensor) -> Any:
    """Return the hooks of a parameter for its traced tensor: each call runs them on the gradient; None without any."""
    if not param._post_hooks:
        return None

    def traced(hook: Callable[[Tensor], Any], image: Tensor) -> None:
        if getattr(hook, "is_traced_hook", False):
            hook(param)
            return
        after: Any = functools.partial(accumulated, param, hook)
        image._grad = tracer.run_hook(after, image._grad, "hook after accumulation")

    return OrderedDict((key, functools.partial(traced, hook)) for key, hook in param._post_hooks.items())


def accumulated(param: Tensor, hook: Callable[[Tensor], Any], gradient: Tensor) -> Tensor:
    """Run a hook with the gradient in ``param.grad``, and return the gradient left there by the hook.

    Raise HookError for a hook that removes the gradient, or that writes to the parameter, which is not written then.
    """
    before, param._grad, version = param._grad, gradient.clone(), param._version
    try:
        with _read_only(param._data):
            hook(param)
        changed = param._grad
    except ArgumentError as error:
        raise _hook_error(f"failed: {error.what}") from error
    finally:
        param._grad = before
    if changed is None or param._version != version:
        raise _hook_error("wrote to the parameter or removed its gradient")
    return changed


@contextmanager
def _read_only(array: Any) -> Iterator[None]:
    """Refuse writes to an array inside of the block."""
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        yield
        return
    array.flags.writeable = False
    try:
        yield
    finally:
        array.flags.writeable = True


def _hook_error(what: str) -> HookError:
    return HookError(
        f"a hook after accumulation, which compiled code calls before it uses the parameter, {what}",
        remedy="change only `grad`; or register graphc.hooks.traced(hook), which becomes part of a training function",
    )


def check_instead(tensors: Iterable[Any], other: Any) -> None:
    """In a trace, let ``first_nan`` check ``other`` in place of tensors; see ``Training``."""
    tracer: Any = front()
    training = getattr(tracer, "training", None)
    if training is not None:
        training.check_instead(tracer, tensors, other)


class _Drop:
    """An action that sets the gradient of a tensor to None."""

    def __init__(self, tensor: Tensor):
        self._tensor = tensor

    def __call__(self) -> None:
        self._tensor._grad = None


def gradient_outside(name: str) -> TraceError:
    """Return the error for code that accesses the gradient of a tensor from outside where it is out of reach."""
    return TraceError(
        f"the grad of a tensor from outside{name and f' {name!r}'} is read, set or added to in a trace",
        origin=capture(module_path.current_path()).describe(),
        remedy="call autograd.grad(loss, tensors) inside, or backward() and zero_grad() outside; or compile the whole "
        "function, or use compile_step(model, loss, optimizer)",
    )
