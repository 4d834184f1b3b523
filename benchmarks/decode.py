"""A token of a decoder with cached keys and values, by how its weights are stored: ``python -m benchmarks.decode``."""

from __future__ import annotations

import argparse
import io
import json
import logging
import statistics
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

import graphc
from benchmarks.harness.framework import read_weights
from benchmarks.harness.sweep import (
    Call,
    Result,
    fill,
    find_library,
    make_onnx_session,
    make_openvino_request,
    make_parser,
    measure,
    parse_with,
    restart_on_one_thread,
    tell,
    torch_on_one_thread,
)
from benchmarks.harness.table import format_ms
from benchmarks.machine import make_read
from benchmarks.models.decoders import SHAPES, Shape, build_decoder, without_states
from graphc.passes.precision import PRECISIONS

PEERS = ("torch", "onnxruntime", "openvino")
"""All in float32."""
NARROW_PEERS = ("openvino-bf16", *(f"{peer}-{p}" for peer in ("onnxruntime", "openvino") for p in ("int8", "int4")))
"""Peers with weights of 16 bits, or of 8 and 4 bits in groups with one scale each."""
BITS = {32: ("f32",), 16: ("bf16", "f16", "bf16_dot"), 8: ("int8", "int8_dot"), 4.5: ("int4", "int4_dot")}
"""Precisions by bits per weight, its share of a scale included."""
READ = "read "
"""Prefix of the name of a contender that only reads the bytes of a precision."""
WHOLE = "f32"
"""Precision of the unchanged weights, which the others are compared with."""
CACHES = (".keys", ".values")
"""Suffixes of the paths of cached keys and values."""


@dataclass(frozen=True)
class Setting:
    """Task of every contender: the logits of a token at a position, with the same weights and filled caches."""

    shape: Shape
    position: int
    named: bool = False
    """Whether graphc's own contenders take the position as a named dimension: one program for all positions."""
    frozen: bool = False
    """Whether weights are constants of graphc's own programs."""

    @cached_property
    def inputs(self) -> list[np.ndarray]:
        """Return a token and its position."""
        return [np.array([self.shape.vocabulary // 2]), np.array([self.position])]

    @cached_property
    def state(self) -> dict[str, np.ndarray]:
        """Return weights and caches by path."""
        graphc.manual_seed(0)
        state = read_weights(build_decoder(graphc.nn, self.shape))
        caches = {name: fill(a.shape, seed) for seed, (name, a) in enumerate(state.items()) if name.endswith(CACHES)}
        return {**state, **caches}

    @cached_property
    def model(self) -> Any:
        """Return graphc's model, which all its contenders share."""
        model = build_decoder(graphc.nn, self.shape)
        model.load_state_dict({name: graphc.tensor(a) for name, a in self.state.items()})
        return model

    def own(self, precision: str) -> Call:
        """Return graphc's contender, as ``graphc.compile`` runs it."""
        narrow = None if precision == WHOLE else precision
        compiled = graphc.compile(self.model, precision=narrow, freeze=self.frozen)
        inputs: list[Any] = [graphc.tensor(a) for a in self.inputs]
        if self.named:
            position = graphc.Dim("position", 0, self.shape.places - 1, hint=self.shape.places // 2)
            dims = {"position": position}
            compiled = graphc.compile(self.model.up_to, precision=narrow, freeze=self.frozen, dims=dims)
            inputs[1] = self.position

        def call() -> Any:
            with graphc.no_grad():
                return compiled(*inputs)

        return call

    def torch_model(self) -> tuple[ModuleType, Any]:
        """Return torch, and its model."""
        torch = torch_on_one_thread()
        if torch is None:
            raise ImportError("torch is not installed")
        model = build_decoder(torch.nn, self.shape)
        model.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in self.state.items()})
        return torch, model

    def torch_eager(self) -> Call:
        """Return torch's contender, in inference mode."""
        torch, model = self.torch_model()
        inputs = [torch.from_numpy(a) for a in self.inputs]

        def call() -> Any:
            with torch.inference_mode():
                return model(*inputs)

        return call

    def caches(self) -> list[np.ndarray]:
        """Return keys and values of each layer, for a caller to keep."""
        return [a.copy() for name, a in self.state.items() if name.endswith(CACHES)]

    @cached_property
    def onnx(self) -> bytes:
        """Return the model without states, as torch exports it."""
        torch, model = self.torch_model()
        arguments = (*(torch.from_numpy(a) for a in self.inputs), [torch.from_numpy(a) for a in self.caches()])
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(without_states(torch, model, self.shape), arguments, dynamo=True, verbose=False)
        program.save(file)
        return file.getvalue()

    def keep(self, run: Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]) -> Call:
        """Return a call of a model without states that copies the returned caches back."""
        caches = self.caches()
        arrays = [*self.inputs, *caches]

        def call() -> np.ndarray:
            logits, *written = run(arrays)
            for cache, rows in zip(caches, written, strict=True):
                cache[:, :, self.position] = rows[:, :, 0]
            return logits

        return call

    def onnx_session(self, model: bytes = b"") -> Call:
        """Return onnxruntime's contender, with the caches in numpy's arrays."""
        onnxruntime = find_library("onnxruntime")
        if onnxruntime is None:
            raise ImportError("onnxruntime is not installed")
        session = make_onnx_session(onnxruntime, model or self.onnx)
        names = [value.name for value in session.get_inputs()]
        return self.keep(lambda arrays: session.run(None, dict(zip(names, arrays, strict=True))))

    def openvino_request(self) -> Call:
        """Return openvino's contender, in float32, with inputs and outputs shared with numpy."""
        return self._openvino(self.onnx)

    def _openvino(self, model: bytes, precision: str = "f32") -> Call:
        openvino = find_library("openvino")
        if openvino is None:
            raise ImportError("openvino is not installed")
        request = make_openvino_request(openvino, model, precision)
        return self.keep(lambda arrays: list(request.infer(arrays, share_inputs=True, share_outputs=True).values()))

    def narrow(self, bits: int) -> bytes:
        """Return the model without states, its matrices stored in so few bits, in groups of 32 with a scale each."""
        onnx, quantizers = (find_library(n) for n in ("onnx", "onnxruntime.quantization.matmul_nbits_quantizer"))
        if onnx is None or quantizers is None:
            raise ImportError("onnx and onnxruntime are not installed")
        logging.getLogger(quantizers.__name__).setLevel(logging.WARNING)
        model = onnx.load_model_from_string(self.onnx)
        quantizer = quantizers.MatMulNBitsQuantizer(model, bits, 32, is_symmetric=True, accuracy_level=4)
        quantizer.process()
        return quantizer.model.model.SerializeToString()

    def narrow_peer(self, name: str) -> Call:
        """Return a peer with narrow weights; those of 8 and 4 bits may round activation rows to 8 bits."""
        peer, _, precision = name.partition("-")
        if precision == "bf16":
            return self._openvino(self.onnx, "bf16")
        model = self.narrow(int(precision.removeprefix("int")))
        return self._openvino(model) if peer == "openvino" else self.onnx_session(model)

    def read_bytes(self, precision: str) -> int:
        """Return the bytes that a token needs: matrices, and the used part of the caches. A table of tokens that also
        serves as a matrix is stored in 8 bits where others have 4."""
        shape = self.shape
        bits = {name: b for b, names in BITS.items() for name in names}[precision]
        table = 0 if shape.gated else shape.vocabulary * shape.width
        return int((shape.weights - table) * bits + table * max(8, int(bits))) // 8 + 4 * shape.used(self.position)


def run_setting(
    setting: Setting, precisions: Sequence[str], peers: Sequence[str], rounds: int, seconds: float
) -> Result:
    """Measure all contenders in turns, f32 first, as the reference of the errors. Beside each precision a contender
    reads the bytes that it needs."""
    contenders = {
        "torch": setting.torch_eager,
        "onnxruntime": setting.onnx_session,
        "openvino": setting.openvino_request,
    }
    narrow: dict[str, Callable[[], Call]] = {p: (lambda p=p: setting.narrow_peer(p)) for p in NARROW_PEERS}
    own = {p: (lambda p=p: setting.own(p)) for p in dict.fromkeys((WHOLE, *precisions))}
    reads = {READ + p: (lambda p=p: make_read(setting.read_bytes(p))) for p in own}
    makers = {**own, **reads, **{p: {**contenders, **narrow}[p] for p in peers}}
    result = measure(Result("decode", {}), makers, rounds, seconds)
    result.errors = {name: error for name, error in result.errors.items() if name not in reads}
    return result


def ratio(result: Result, name: str, over: str = WHOLE) -> float:
    """Return median over the rounds of one contender's time over another's in the same round."""
    pairs = zip(result.rounds_ms[over], result.rounds_ms[name], strict=True)
    return statistics.median(full / own for full, own in pairs)


def format_table(result: Result) -> str:
    """Return a row for each contender, and why one has none."""
    lines = [
        "| weights, or peer | ms | times as fast as f32 | of reading's speed | error |",
        "|---|---|---|---|---|",
    ]
    for name in result.rounds_ms:
        if name.startswith(READ):
            continue
        share = f"{ratio(result, name, READ + name):.2f}" if READ + name in result.rounds_ms else "-"
        cells = [name, format_ms(result.ms(name) or 0.0), f"{ratio(result, name):.2f}", share]
        lines.append(f"| {' | '.join([*cells, f'{result.errors.get(name, 0.0):.1e}'])} |")
    return "\n".join([*lines, *(f"{name}: {problem}" for name, problem in result.problems.items())])


def report(options: argparse.Namespace, result: Result, facts: Mapping[str, int]) -> None:
    """Print the result as JSON or as a table."""
    if options.json:
        ms = {name: result.ms(name) for name in result.rounds_ms}
        print(json.dumps({**facts, **vars(result), "ms": ms}, indent=1))
        return
    print(
        f"One core, milliseconds per token at position {options.position}, medians of {options.rounds} rounds; error: "
        "the largest difference over the largest magnitude. A contender 'read' only reads the bytes of a precision.\n"
    )
    print(format_table(result))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = make_parser(__doc__ or "", PEERS)
    parser.add_argument("--model", choices=SHAPES, default="gated", help="shape of the decoder (default: gated)")
    parser.add_argument(
        "--precision",
        nargs="+",
        choices=(WHOLE, *PRECISIONS),
        default=list(PRECISIONS),
        help="precisions of the weights (default: all)",
    )
    parser.add_argument("--named", action="store_true", help="make the position a named dimension for graphc")
    parser.add_argument("--freeze", action="store_true", help="compile the weights into graphc's programs as constants")
    parser.add_argument("--position", type=int, default=300, metavar="N")
    parser.add_argument("--places", type=int, metavar="N", help="capacity of the caches in tokens")
    options = parse_with(parser, argv, (*PEERS, *NARROW_PEERS))
    shape = SHAPES[options.model]
    if options.places is not None:
        shape = replace(shape, places=options.places)
    if options.position not in range(shape.places):
        parser.error(f"--position {options.position} is outside of the {shape.places} positions")
    tell("decode")
    setting = Setting(shape, options.position, options.named, options.freeze)
    result = run_setting(setting, options.precision, options.peers, options.rounds, options.seconds)
    report(options, result, {**vars(shape), "position": options.position})
    return 0


if __name__ == "__main__":
    restart_on_one_thread("benchmarks.decode")
    sys.exit(main())
