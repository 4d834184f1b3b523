"""Report of a quantized model: signal-to-noise ratio, input range and clipped inputs of each layer."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

from graphc.base.difference import SignalNoise
from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass
from graphc.nn.module import Module
from graphc.quantization.batches import Batch, attached, batches_of, input_of, run
from graphc.quantization.layers import Quantized, float_layers
from graphc.quantization.rewrites import results_of
from graphc.tape.grad_mode import no_grad

__all__ = ["LayerReport", "QuantizationReport", "quantization_report"]


_RESULTS = "results"
"""Name of the last row of a table."""


@dataclass(frozen=True)
class LayerReport:
    """A linear layer or convolution of a quantized model."""

    name: str
    """Dotted path below the model."""
    kind: str
    """Name of its class."""
    snr: float
    """Signal-to-noise ratio in dB: squares of the f32 layer's results over squares of the differences from them, for
    the same inputs. NaN for a layer that stays f32."""
    low: float
    """Smallest input that has a code."""
    high: float
    """Largest input that has a code."""
    clipped: float
    """Fraction of the inputs outside of this range."""
    reason: str = ""
    """Reason why the layer stays f32; empty for a quantized one."""

    @property
    def is_quantized(self) -> bool:
        """Return whether the layer computes with codes."""
        return not self.reason


@dataclass(frozen=True)
class QuantizationReport:
    """Layers of a quantized model, in the order of registration. ``print`` shows a table."""

    layers: tuple[LayerReport, ...]
    snr: float
    """Signal-to-noise ratio in dB of the model's floating-point results, beside those of f32 layers with the same
    parameters. NaN without f32 weights."""
    folded: tuple[str, ...] = ()
    """Names of layers into which a batch normalization was folded."""
    smoothed: tuple[str, ...] = ()
    """Names of normalizations whose large channels moved into the layers that read them."""
    equalized: tuple[tuple[str, str], ...] = ()
    """Names of consecutive layers whose channels were balanced."""

    def __getitem__(self, name: str) -> LayerReport:
        return {layer.name: layer for layer in self.layers}[name]

    @property
    def float_layers(self) -> tuple[str, ...]:
        """Names of the layers that stay f32."""
        return tuple(layer.name for layer in self.layers if not layer.is_quantized)

    def __str__(self) -> str:
        width = max((len(layer.name) for layer in self.layers), default=0)
        width = max(width, len(_RESULTS))
        kinds = max((len(layer.kind) for layer in self.layers), default=0)
        lines = []
        for layer in self.layers:
            numbers = (
                f"{layer.snr:6.1f} dB  {layer.low:9.4g} .. {layer.high:<9.4g}  {layer.clipped:.2%} clipped"
                if layer.is_quantized
                else f"f32: {layer.reason}"
            )
            lines.append(f"{layer.name:{width}}  {layer.kind:{kinds}}  {numbers}")
        return "\n".join([*lines, f"{_RESULTS:{width}}  {'':{kinds}}  {self.snr:6.1f} dB"])


@dataclass
class Sums(SignalNoise):
    """Sums over the calls of a layer."""

    outside: int = 0
    """Number of inputs without a code."""
    count: int = 0
    """Number of inputs."""


def measured(model: Module, batches: Sequence[Batch]) -> dict[str, Sums]:
    """Run a quantized model, and compare each quantized layer that has its f32 weight with its f32 form, on the inputs
    that it gets."""
    layers = {name: m for name, m in model.named_modules() if isinstance(m, Quantized) and m.has_weight}
    sums = {name: Sums() for name in layers}
    handles = [m.register_forward_hook(_comparison(sums[name]), with_kwargs=True) for name, m in layers.items()]
    with attached(handles):
        for batch in batches:
            run(model, batch)
    return sums


def _comparison(sums: Sums) -> Any:
    def compare(module: Quantized, args: Any, kwargs: Any, result: Any) -> None:
        x = input_of(args, kwargs)
        with no_grad():
            sums.add(module.float_forward(x)._values(force=True), result._values(force=True))
        low, high = module.input_range
        inputs, half = x._values(force=True), (high - low) / 510  # half a step beyond the last code rounds to it
        sums.outside += int(((inputs < low - half) | (inputs > high + half)).sum())
        sums.count += inputs.size

    return compare


def _result_ratio(model: Module, batches: Sequence[Batch]) -> float:
    """Return the signal-to-noise ratio of the model's results, beside those of its f32 layers."""
    layers = [module for module in model.modules() if isinstance(module, Quantized)]
    if not all(layer.has_weight for layer in layers):
        return nan
    sums = SignalNoise()
    for batch in batches:
        result = results_of(model, batch)
        with float_layers(layers):
            exact = results_of(model, batch)
        for a, b in zip(exact, result, strict=True):
            if a.dtype.kind == "f" and a.shape == b.shape:
                sums.add(a, b)
    return sums.snr


def report_of(
    model: Module,
    batches: Sequence[Batch],
    sums: dict[str, Sums],
    reasons: dict[str, str],
    folded: Sequence[str] = (),
    smoothed: Sequence[str] = (),
    equalized: Sequence[tuple[str, str]] = (),
) -> QuantizationReport:
    """Build the report from the sums of quantized layers, and the reasons why others stay f32."""
    layers = []
    for name, module in model.named_modules():
        if name in sums and isinstance(module, Quantized):
            total = sums[name]
            clipped = total.outside / max(total.count, 1)
            layers.append(LayerReport(name, type(module).__name__, total.snr, *module.input_range, clipped))
        elif name in reasons:
            layers.append(LayerReport(name, type(module).__name__, nan, nan, nan, 0.0, reasons[name]))
    return QuantizationReport(
        tuple(layers), _result_ratio(model, batches), tuple(folded), tuple(smoothed), tuple(equalized)
    )


def quantization_report(model: Module, data: Any) -> QuantizationReport:
    """Measure each quantized layer of a model on data, beside its f32 form.

    Args:
        model: a model that ``gc.quantize`` returned, in evaluation mode.
        data: an iterable of inputs, as for ``quantize``.

    Returns:
        A QuantizationReport; ``print`` shows a table.

    Raises:
        ArgumentError: a model without quantized layers or without their f32 weights, or no data.

    Example:
        >>> import graphc as gc
        >>> x = gc.linspace(-1, 1, 12).reshape(3, 4)
        >>> model = gc.quantize(gc.nn.Sequential(gc.nn.Linear(4, 2)), [x])
        >>> gc.quantization_report(model, [10 * x])["0"].clipped > 0.5
        True
    """
    if not any(isinstance(module, Quantized) for module in model.modules()):
        raise ArgumentError(
            "quantization_report: the model has no quantized layers", remedy="pass the result of gc.quantize"
        )
    if any(isinstance(module, Quantized) and not module.has_weight for module in model.modules()):
        raise ArgumentError(
            "quantization_report: the model has no f32 weights to compare with",
            remedy="quantize it with trainable=True",
        )
    batches = list(batches_of(model, data))
    if not batches:
        raise ArgumentError("quantization_report: the data has no inputs", remedy="pass at least one input")
    former = getattr(model, "quantization", None)
    reasons = {x.name: x.reason for x in former.layers if x.reason} if former is not None else {}
    changed = (former.folded, former.smoothed, former.equalized) if former is not None else ()
    return report_of(model, batches, measured(model, batches), reasons, *changed)
