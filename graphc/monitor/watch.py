"""Monitor: collect statistics of activations and gradients through hooks, without changing the model."""

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


class _TensorStatistics:
    """Statistics of one tensor since the last step, and the names under which they are written."""

    def __init__(self, name: str, fields: dict[str, str], nonfinite: str):
        self.name = name
        """Name of its histogram."""
        self.scalars = [(scalar, operator.attrgetter(field)) for scalar, field in fields.items()]
        self.nonfinite = f"{nonfinite}/nonfinite"
        self.calls: list[Statistics] = []
        self.take: Callable[[Statistics], None] = self.calls.append
        """Receiver of a tap. It is the list's own method, since a step of milliseconds takes hundreds of taps."""

    def write(self, writer: Writer, step: int, histograms: bool) -> None:
        """Write the means over the calls of the step, and the last histogram."""
        broken = [float(call.nonfinite) for call in self.calls if call.nonfinite]
        if broken:
            writer.scalar(self.nonfinite, sum(broken) / len(broken), step)
        finite = [call for call in self.calls if call.size > call.nonfinite]
        if finite:
            for name, field in self.scalars:
                writer.scalar(name, sum(map(field, finite)) / len(finite), step)
        if histograms and self.calls[-1].size:
            writer.histogram(self.name, histogram_of(self.calls[-1]), step)


class Monitor:
    """Monitor of the outputs of modules, their gradients, and the gradients of parameters.

    Every ``every``-th step is watched. ``step()`` ends a step and writes, for each watched module, ``NAME/mean``,
    ``NAME/std``, ``NAME/zeros`` (the fraction of zeros) and ``NAME/gradient`` (the norm of the gradient), and for each
    parameter ``NAME/gradient``; with histograms also ``NAME/values`` and ``NAME/gradient values``. ``.../nonfinite``
    counts NaN and infinities. Hooks return nothing, so the model
    computes the same as without them. Compiled code is watched through extra kernels (taps, see docs/hooks.md).

    As a context manager it closes itself: ``close`` removes the hooks, which brings back the unwatched compiled code,
    and closes the writers.

    Args:
        model: the module to watch.
        writers: receivers of the numbers.
        every: number of steps from one watched step to the next.
        names: patterns of module paths such as ``features.*`` (default: every module without children).
        histograms: also write a histogram of each watched tensor.
        parameters: watch the gradients of parameters.
        classes: append the class to a module's name, as in ``encoder.0 (Linear)/mean`` (the default).

    Raises:
        ArgumentError: ``model`` is not a Module, or ``every`` is below 1.

    Example:
        >>> import graphc as gc
        >>> model = gc.nn.Sequential(gc.nn.Linear(3, 4), gc.nn.ReLU())
        >>> with gc.monitor.Monitor(model, gc.monitor.HtmlWriter("monitor.html")) as monitor:
        ...     y = model(gc.ones(2, 3))
        ...     monitor.step(loss=0.5)
        >>> with open("monitor.html") as file:
        ...     page = file.read()
        >>> "loss" in page and "0 (Linear)/std" in page
        True
    """

    def __init__(
        self,
        model: Module,
        *writers: Writer,
        every: int = 1,
        names: Sequence[str] | None = None,
        histograms: bool = False,
        parameters: bool = True,
        classes: bool = True,
    ):
        if not isinstance(model, Module) or every < 1:
            raise ArgumentError(f"Monitor needs a Module and every >= 1, got {type(model).__name__} and every={every}")
        self.writers = list(writers)
        self.every = every
        self.histograms = histograms
        self.steps = 0
        """Number of steps that have ended."""
        self._statistics: dict[str, _TensorStatistics] = {}
        self._handles: list[Any] = []
        for name, module in model.named_modules():
            if _is_watched(name, module, names):
                kind = type(module).__name__
                label = f"{name} ({kind})" if name and classes else name or kind
                self._handles.append(module.register_forward_hook(self._forward_hook(label)))
        for name, parameter in model.named_parameters() if parameters else ():
            if parameter.requires_grad and _is_watched(name, None, names):
                self._handles.append(parameter.register_hook(self._gradient_hook(name)))

    # ---- hooks

    def _is_silent(self) -> bool:
        return self.steps % self.every != 0

    def _kinds(self, default: str) -> str:
        return "mean norm zeros histogram" if self.histograms else default

    def _activations(self, name: str) -> _TensorStatistics:
        values = f"{name}/values"
        if values not in self._statistics:
            fields = {f"{name}/{field}": field for field in ("mean", "std", "zeros")}
            self._statistics[values] = _TensorStatistics(values, fields, values)
        return self._statistics[values]

    def _gradients(self, name: str) -> _TensorStatistics:
        gradient = f"{name}/gradient"
        if gradient not in self._statistics:
            self._statistics[gradient] = _TensorStatistics(f"{gradient} values", {gradient: "norm"}, gradient)
        return self._statistics[gradient]

    def _forward_hook(self, name: str) -> Any:
        @traced_hook
        def look(module: Module, args: Any, output: Any) -> Any:
            if self._is_silent() and not is_tracing():
                return None
            tensors, structure = flatten(output)
            watched, kinds = list(tensors), self._kinds("norm")
            for i, tensor in enumerate(tensors):
                label = name if len(tensors) == 1 else f"{name}.{i}"
                tap(tensor, self._activations(label).take, self._kinds("mean zeros"))
                watched[i] = tap_gradient(tensor, self._gradients(label).take, kinds)
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
        """End a step: write the statistics (means over several calls of a module) and ``scalars`` such as
        ``loss=loss``."""
        for name, value in scalars.items():
            self.scalar(name, value)
        for statistics in self._statistics.values():
            if statistics.calls and not self._is_silent():
                for writer in self.writers:
                    statistics.write(writer, self.steps, self.histograms)
            statistics.calls.clear()
        self.steps += 1
        for writer in self.writers:
            writer.flush()

    def scalar(self, name: str, value: Any) -> None:
        """Write one number: a float, or a tensor with one element. Raises ArgumentError for other shapes."""
        number = values_of(value)
        if number.size != 1:
            raise ArgumentError(
                f"{name!r} is not a number, it has shape {list(number.shape)}", remedy="pass its .mean()"
            )
        self._write("scalar", name, float(number.reshape(())))

    def histogram(self, name: str, value: Any) -> None:
        """Write the histogram of a tensor or array."""
        self._write("histogram", name, make_histogram(value))

    def image(self, name: str, value: Any) -> None:
        """Write an image: [height, width], or [channels, height, width] with 1 or 3 channels."""
        self._write("image", name, make_image(value))

    def _write(self, kind: str, name: str, value: Any) -> None:
        for writer in self.writers:
            getattr(writer, kind)(name, value, self.steps)

    # ---- end

    def close(self) -> None:
        """Remove the hooks and close the writers; a second call does nothing."""
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
