"""Monitor: collects numbers about activations and gradients through hooks that change nothing."""

from __future__ import annotations

import fnmatch
import operator
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from graphc.base.errors import ArgumentError
from graphc.monitor.writer import Writer, histogram_of, make_histogram, make_image, values_of
from graphc.nn.compiled_hooks import traced_hook
from graphc.nn.module import Module
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tracing.taps import Statistics, tap, tap_gradient
from graphc.tracing.trace import is_tracing


class _Place:
    """What taps have told of one tensor since the last step, and how it is shown."""

    def __init__(self, name: str, shown: dict[str, str], nonfinite: str):
        self.name = name
        """Of its histogram."""
        self.shown = [(scalar, operator.attrgetter(field)) for scalar, field in shown.items()]
        self.nonfinite = f"{nonfinite}/nonfinite"
        self.seen: list[Statistics] = []
        self.take: Callable[[Statistics], None] = self.seen.append
        """A method of a list: hundreds of taps are taken in a step that takes milliseconds."""

    def hand(self, writer: Writer, step: int, histograms: bool) -> None:
        """Hands on the means over the calls of the step, and the last histogram."""
        broken = [float(found.nonfinite) for found in self.seen if found.nonfinite]
        if broken:
            writer.scalar(self.nonfinite, sum(broken) / len(broken), step)
        seen = [found for found in self.seen if found.size > found.nonfinite]
        if seen:
            for name, field in self.shown:
                writer.scalar(name, sum(map(field, seen)) / len(seen), step)
        if histograms and self.seen[-1].size:
            writer.histogram(self.name, histogram_of(self.seen[-1]), step)


class Monitor:
    """Watches the outputs of modules, their gradients, and the gradients of parameters.

    Forward hooks see what modules return, tensor hooks what gradients pass there and reach the parameters; no hook
    returns anything, so the model computes what it would without them. Every ``every``-th step is watched, and
    ``step()`` ends one: it hands to the writers, for each watched module, ``NAME/mean``, ``NAME/std``, ``NAME/zeros``
    (the share of values that are 0), ``NAME/gradient`` (its norm), and for each parameter ``NAME/gradient``. Values
    that are no finite numbers are counted in ``.../nonfinite``. With ``histograms``, every such tensor is also shown as
    a histogram. ``names`` are patterns such as ``features.*`` of the modules to watch; by default these are all that
    hold no others. ``classes`` puts the name of the class behind a module's, as in ``encoder.0 (Linear)/mean``.

    Compiled code is watched too: kernels of its own compute the numbers, between the others (taps, see docs/hooks.md).
    ``close`` brings back the code that watches nothing.

    A context manager: ``close`` takes the hooks off and closes the writers.
    """

    def __init__(
        self,
        model: Module,
        *writers: Writer,
        every: int = 1,
        names: Sequence[str] | None = None,
        histograms: bool = False,
        parameters: bool = True,
        classes: bool = False,
    ):
        if not isinstance(model, Module) or every < 1:
            raise ArgumentError(
                f"a monitor watches a Module every 1 or more steps, got {type(model).__name__}, {every}"
            )
        self.writers = list(writers)
        self.every = every
        self.histograms = histograms
        self.steps = 0
        """Steps that have ended."""
        self._places: dict[str, _Place] = {}
        self._handles: list[Any] = []
        for name, module in model.named_modules():
            if _is_watched(name, module, names):
                kind = type(module).__name__
                place = f"{name} ({kind})" if name and classes else name or kind
                self._handles.append(module.register_forward_hook(self._forward_hook(place)))
        for name, parameter in model.named_parameters() if parameters else ():
            if parameter.requires_grad and _is_watched(name, None, names):
                self._handles.append(parameter.register_hook(self._gradient_hook(name)))

    # ---- hooks

    def _is_silent(self) -> bool:
        return self.steps % self.every != 0

    def _kinds(self, wanted: str) -> str:
        return "mean norm zeros histogram" if self.histograms else wanted

    def _activations(self, name: str) -> _Place:
        values = f"{name}/values"
        if values not in self._places:
            self._places[values] = _Place(
                name, {f"{name}/{field}": field for field in ("mean", "std", "zeros")}, values
            )
        return self._places[values]

    def _gradients(self, name: str) -> _Place:
        gradient = f"{name}/gradient"
        if gradient not in self._places:
            self._places[gradient] = _Place(gradient, {gradient: "norm"}, gradient)
        return self._places[gradient]

    def _forward_hook(self, name: str) -> Any:
        @traced_hook
        def look(module: Module, args: Any, output: Any) -> Any:
            if self._is_silent() and not is_tracing():
                return None
            tensors, structure = flatten(output)
            watched, kinds = list(tensors), self._kinds("norm")
            for i, tensor in enumerate(tensors):
                place = name if len(tensors) == 1 else f"{name}.{i}"
                tap(tensor, self._activations(place).take, self._kinds("mean zeros"))
                watched[i] = tap_gradient(tensor, self._gradients(place).take, kinds)
            is_same = all(a is b for a, b in zip(tensors, watched, strict=True))
            return None if is_same else unflatten(structure, watched)

        return look

    def _gradient_hook(self, name: str) -> Any:
        @traced_hook
        def look(gradient: Tensor) -> None:
            if is_tracing() or not self._is_silent():
                tap(gradient, self._gradients(name).take, self._kinds("norm"))

        return look

    # ---- what the user adds

    def step(self, **scalars: Any) -> None:
        """Ends a step: hands on what the hooks saw (the mean, where a module was called several times) and ``scalars``,
        such as ``loss=loss``."""
        for name, value in scalars.items():
            self.scalar(name, value)
        for place in self._places.values():
            if place.seen and not self._is_silent():
                for writer in self.writers:
                    place.hand(writer, self.steps, self.histograms)
            place.seen.clear()
        self.steps += 1
        for writer in self.writers:
            writer.flush()

    def scalar(self, name: str, value: Any) -> None:
        """Hands on one number: a float, or a tensor with one element."""
        number = values_of(value)
        if number.size != 1:
            raise ArgumentError(f"{name!r} is no number but has shape {list(number.shape)}", remedy="its .mean()")
        self._hand("scalar", name, float(number.reshape(())))

    def histogram(self, name: str, value: Any) -> None:
        """Hands on the histogram of a tensor or array."""
        self._hand("histogram", name, make_histogram(value))

    def image(self, name: str, value: Any) -> None:
        """Hands on a picture: [height, width] or [channels, height, width] with 1 or 3 channels."""
        self._hand("image", name, make_image(value))

    def _hand(self, kind: str, name: str, value: Any) -> None:
        for writer in self.writers:
            getattr(writer, kind)(name, value, self.steps)

    # ---- end

    def close(self) -> None:
        """Takes the hooks off and closes the writers; a second call does nothing."""
        for handle in self._handles:
            handle.remove()
        for writer in self.writers:
            writer.close()
        self._handles, self.writers = [], []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_watched(name: str, module: Module | None, patterns: Sequence[str] | None) -> bool:
    if patterns is not None:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    return module is None or not module._modules
