"""A token of a decoder with cached keys and values, by how its weights are stored: ``python -m benchmarks.decode``."""

from __future__ import annotations

import argparse
import io
import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

import graphc
from benchmarks.harness.framework import read_weights
from benchmarks.harness.process import pin
from benchmarks.harness.results import Result, cell, format_ms, format_problems, format_table
from benchmarks.harness.sweep import fill, limited_torch, make_parser, pick, print_json, restart, tell
from benchmarks.harness.timing import Call, Makers, measure, no_grad
from benchmarks.machine import make_read
from benchmarks.models.decoders import SHAPES, Shape, build_decoder, without_states
from benchmarks.peers.onnx_calls import Run, onnx_run
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
        return [np.array([self.shape.vocabulary // 2]), np.array([self.position])]

    @cached_property
    def state(self) -> dict[str, np.ndarray]:
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

        return no_grad(graphc, compiled, *inputs)

    def torch_model(self) -> tuple[ModuleType, Any]:
        torch = limited_torch()
        model = build_decoder(torch.nn, self.shape)
        model.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in self.state.items()})
        return torch, model

    def caches(self) -> list[np.ndarray]:
        """Return keys and values of each layer, for a caller to keep."""
        return [a.copy() for name, a in self.state.items() if name.endswith(CACHES)]

    @cached_property
    def onnx(self) -> bytes:
        """Return the model without states, as torch exports it."""
        torch, model = self.torch_model()
        arguments = *map(torch.from_numpy, self.inputs), list(map(torch.from_numpy, self.caches()))
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(without_states(torch, model, self.shape), arguments, dynamo=True, verbose=False)
        program.save(file)
        return file.getvalue()

    def keep(self, run: Run) -> Call:
        """Return a call of a model without states that copies the returned caches back."""
        caches = self.caches()
        arrays = [*self.inputs, *caches]

        def call() -> np.ndarray:
            logits, *written = run(arrays)
            for cache, rows in zip(caches, written, strict=True):
                cache[:, :, self.position] = rows[:, :, 0]
            return logits

        return call

    def narrow(self, bits: int) -> bytes:
        """Return the model without states, its matrices stored in so few bits, in groups of 32 with a scale each."""
        quantizers = import_module("onnxruntime.quantization.matmul_nbits_quantizer")
        logging.getLogger(quantizers.__name__).setLevel(logging.WARNING)
        model = import_module("onnx").load_model_from_string(self.onnx)
        quantizer = quantizers.MatMulNBitsQuantizer(model, bits, 32, is_symmetric=True, accuracy_level=4)
        quantizer.process()
        return quantizer.model.model.SerializeToString()

    def peer(self, name: str) -> Call:
        """Return a peer, perhaps with narrow weights; with those of 8 and 4 bits, activations may be rounded to 8."""
        library, _, precision = name.partition("-")
        if library == "torch":
            torch, model = self.torch_model()
            return no_grad(torch, model, *map(torch.from_numpy, self.inputs))
        import_module(library)  # before the export, which takes long
        model = self.narrow(int(precision[3:])) if precision.startswith("int") else self.onnx
        return self.keep(onnx_run(library, model, precision="bf16" if precision == "bf16" else "f32"))

    def read_bytes(self, precision: str) -> int:
        """Return the bytes that a token needs: matrices, and the used part of the caches. A table of tokens that also
        serves as a matrix is stored in 8 bits where others have 4."""
        shape = self.shape
        bits = {name: b for b, names in BITS.items() for name in names}[precision]
        table = 0 if shape.gated else shape.vocabulary * shape.width
        return int((shape.weights - table) * bits + table * max(8, int(bits))) // 8 + 4 * shape.used(self.position)

    def makers(self, precisions: Sequence[str], peers: Sequence[str]) -> Makers:
        """Return all contenders, f32 first, as the reference of the errors. Beside each precision a contender reads the
        bytes that it needs."""
        own = list(dict.fromkeys((WHOLE, *precisions)))
        makers: dict[str, Callable[[], Call]] = {p: partial(self.own, p) for p in own}
        makers |= {READ + p: (lambda p=p: make_read(self.read_bytes(p))) for p in own}
        return makers | {p: partial(self.peer, p) for p in peers}


def run_setting(
    setting: Setting, precisions: Sequence[str], peers: Sequence[str], rounds: int, seconds: float
) -> Result:
    result = measure(Result("decode"), setting.makers(precisions, peers), rounds, seconds)
    result.errors = {name: error for name, error in result.errors.items() if not name.startswith(READ)}
    return result


def format_contenders(result: Result) -> str:
    """Return a row for each contender, and why one has none."""
    rows = []
    for name in result.rounds_ms:
        if not name.startswith(READ):
            cells = [cell(result.over(WHOLE, name), ".2f"), cell(result.over(READ + name, name), ".2f")]
            rows.append([name, format_ms(result.ms(name) or 0.0), *cells, f"{result.errors.get(name, 0.0):.1e}"])
    columns = ["weights, or peer", "ms", "times as fast as f32", "of reading's speed", "error"]
    return "\n".join([format_table(columns, rows), *format_problems([result])])


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line; ``setting`` is what it describes."""
    parser = make_parser("benchmarks.decode", __doc__)
    add = parser.add_argument
    add("--peers", type=pick((*PEERS, *NARROW_PEERS)), default=list(PEERS), metavar=",".join((*PEERS, *NARROW_PEERS)))
    add("--model", choices=SHAPES, default="gated", help="shape of the decoder (default: gated)")
    precisions = "precisions of the weights (default: all)"
    add("--precision", nargs="+", choices=(WHOLE, *PRECISIONS), default=list(PRECISIONS), help=precisions)
    add("--named", action="store_true", help="make the position a named dimension for graphc")
    add("--freeze", action="store_true", help="compile the weights into graphc's programs as constants")
    add("--position", type=int, default=300, metavar="N")
    add("--places", type=int, metavar="N", help="capacity of the caches in tokens")
    options = parser.parse_args(argv)
    shape = SHAPES[options.model]
    if options.places is not None:
        shape = replace(shape, places=options.places)
    if options.position not in range(shape.places):
        parser.error(f"--position {options.position} is outside of the {shape.places} positions")
    options.setting = Setting(shape, options.position, options.named, options.freeze)
    return options


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    pin(1)
    tell("decode")
    result = run_setting(options.setting, options.precision, options.peers, options.rounds, options.seconds)
    if options.json:
        print_json([result], **vars(options.setting.shape), position=options.position)
        return 0
    print(
        f"One core, milliseconds per token at position {options.position}, medians of {options.rounds} rounds; error: "
        f"the largest difference over the largest magnitude.\n\n{format_contenders(result)}"
    )
    return 0


if __name__ == "__main__":
    restart("benchmarks.decode")
    sys.exit(main())
