"""A token of a decoder with cached keys and values, by how its weights are stored: ``python -m benchmarks.decode``."""

from __future__ import annotations

import argparse
import io
import json
import statistics
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

import graphc
from benchmarks.framework import read_weights
from benchmarks.more_models import package_of
from benchmarks.sweep import (
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
from benchmarks.table import format_ms
from graphc.passes.precision import PRECISIONS

PEERS = ("torch", "onnxruntime", "openvino")
"""All in float32."""
WHOLE = "f32"
"""Weights as they are, what the others are compared with."""
CACHES = (".keys", ".values")
"""What the paths of cached keys and values end with."""


@dataclass(frozen=True)
class Shape:
    """Of a decoder."""

    width: int = 768
    heads: int = 12
    layers: int = 8
    vocabulary: int = 8192
    places: int = 512
    """Tokens that the caches have room for."""


def build_decoder(nn: ModuleType, shape: Shape) -> Any:
    """RMS norms, learned places, attention to keys and values in buffers, gated perceptrons of four times the width."""
    F, package, width = nn.functional, package_of(nn), shape.width

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
            self.heads, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.gate, self.up = (nn.Linear(width, 4 * width, bias=False) for _ in range(2))
            self.down = nn.Linear(4 * width, width, bias=False)
            for name in ("keys", "values"):
                empty = package.zeros(1, shape.heads, shape.places, width // shape.heads)
                self.register_buffer(name, empty)

        def split(self, x):
            """The token's queries, keys and values, ``[1, heads, 1, size]`` each."""
            parts = self.heads(self.norm1(x)).view(1, 1, 3, shape.heads, width // shape.heads)
            return parts.permute(2, 0, 3, 1, 4)

        def finish(self, x, attended):
            x = x + self.out(attended.transpose(1, 2).reshape(1, 1, width))
            y = self.norm2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(shape.vocabulary, width), nn.Embedding(shape.places, width)
            self.layers = nn.ModuleList([Layer() for _ in range(shape.layers)])
            self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, shape.vocabulary, bias=False)

        def begin(self, token, place):
            return self.tokens(token)[None] + self.places(place)[None]

        def forward(self, token, place):
            x = self.begin(token, place)
            mask = (package.arange(shape.places) <= place)[None, None, None, :]
            for layer in self.layers:
                query, key, value = layer.split(x)
                layer.keys.index_copy_(2, place, key)
                layer.values.index_copy_(2, place, value)
                attended = F.scaled_dot_product_attention(query, layer.keys, layer.values, attn_mask=mask)
                x = layer.finish(x, attended)
            return self.head(self.norm(x))

    return Decoder().eval()


def without_states(torch: ModuleType, decoder: Any, shape: Shape) -> Any:
    """The decoder for libraries whose models keep nothing between calls: it takes the caches, and returns the token's
    keys and values for the caller to write. It attends to these beside the cache, so that nothing large is copied."""
    scale = (shape.width // shape.heads) ** -0.5

    class WithoutStates(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.decoder = decoder

        def forward(self, token, place, caches):
            x, written = decoder.begin(token, place), []
            hidden = torch.where(torch.arange(shape.places) < place, 0.0, float("-inf"))
            for layer, keys, values in zip(decoder.layers, caches[::2], caches[1::2], strict=True):
                query, key, value = layer.split(x)
                old = query @ keys.transpose(-1, -2) * scale + hidden
                own = (query * key).sum(-1, keepdim=True) * scale
                share = torch.softmax(torch.cat((old, own), -1), -1)
                x = layer.finish(x, share[..., :-1] @ values + share[..., -1:] * value)
                written += [key, value]
            return decoder.head(decoder.norm(x)), *written

    return WithoutStates().eval()


@dataclass(frozen=True)
class Setting:
    """What every contender computes: the logits of a token at a place, with the same weights and filled caches."""

    shape: Shape
    place: int

    @cached_property
    def inputs(self) -> list[np.ndarray]:
        """A token and its place."""
        return [np.array([self.shape.vocabulary // 2]), np.array([self.place])]

    @cached_property
    def state(self) -> dict[str, np.ndarray]:
        """Weights and caches by path."""
        graphc.manual_seed(0)
        state = read_weights(build_decoder(graphc.nn, self.shape))
        caches = {name: fill(a.shape, seed) for seed, (name, a) in enumerate(state.items()) if name.endswith(CACHES)}
        return {**state, **caches}

    @cached_property
    def model(self) -> Any:
        """Of graphc, which all its contenders share."""
        model = build_decoder(graphc.nn, self.shape)
        model.load_state_dict({name: graphc.tensor(a) for name, a in self.state.items()})
        return model

    def own(self, precision: str) -> Call:
        """graphc, as ``graphc.compile`` runs it."""
        compiled = graphc.compile(self.model, precision=None if precision == WHOLE else precision)
        inputs = [graphc.tensor(a) for a in self.inputs]

        def call() -> Any:
            with graphc.no_grad():
                return compiled(*inputs)

        return call

    def torch_model(self) -> tuple[ModuleType, Any]:
        """torch, and its model."""
        torch = torch_on_one_thread()
        if torch is None:
            raise ImportError("torch is not installed")
        model = build_decoder(torch.nn, self.shape)
        model.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in self.state.items()})
        return torch, model

    def torch_eager(self) -> Call:
        """torch, in inference mode."""
        torch, model = self.torch_model()
        inputs = [torch.from_numpy(a) for a in self.inputs]

        def call() -> Any:
            with torch.inference_mode():
                return model(*inputs)

        return call

    def caches(self) -> list[np.ndarray]:
        """Keys and values of each layer, for a caller to keep."""
        return [a.copy() for name, a in self.state.items() if name.endswith(CACHES)]

    @cached_property
    def onnx(self) -> bytes:
        """The model without states, as torch exports it."""
        torch, model = self.torch_model()
        arguments = (*(torch.from_numpy(a) for a in self.inputs), [torch.from_numpy(a) for a in self.caches()])
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(without_states(torch, model, self.shape), arguments, dynamo=True, verbose=False)
        program.save(file)
        return file.getvalue()

    def keep(self, run: Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]) -> Call:
        """A call of a model without states, and the writing of what it returns."""
        caches = self.caches()
        arrays = [*self.inputs, *caches]

        def call() -> np.ndarray:
            logits, *written = run(arrays)
            for cache, rows in zip(caches, written, strict=True):
                cache[:, :, self.place] = rows[:, :, 0]
            return logits

        return call

    def onnx_session(self) -> Call:
        """onnxruntime, with the caches in numpy's arrays."""
        onnxruntime = find_library("onnxruntime")
        if onnxruntime is None:
            raise ImportError("onnxruntime is not installed")
        session = make_onnx_session(onnxruntime, self.onnx)
        names = [value.name for value in session.get_inputs()]
        return self.keep(lambda arrays: session.run(None, dict(zip(names, arrays, strict=True))))

    def openvino_request(self) -> Call:
        """openvino, in float32, inputs and outputs shared with numpy."""
        openvino = find_library("openvino")
        if openvino is None:
            raise ImportError("openvino is not installed")
        request = make_openvino_request(openvino, self.onnx)
        return self.keep(lambda arrays: list(request.infer(arrays, share_inputs=True, share_outputs=True).values()))


def run_setting(
    setting: Setting, precisions: Sequence[str], peers: Sequence[str], rounds: int, seconds: float
) -> Result:
    """All contenders in turns, f32 the first; errors are against it."""
    known = {"torch": setting.torch_eager, "onnxruntime": setting.onnx_session, "openvino": setting.openvino_request}
    own = {p: (lambda p=p: setting.own(p)) for p in dict.fromkeys((WHOLE, *precisions))}
    return measure(Result("decode", {}), {**own, **{p: known[p] for p in peers}}, rounds, seconds)


def gain(result: Result, name: str) -> float:
    """Median over the rounds of f32's time over a contender's in the same round."""
    pairs = zip(result.rounds_ms[WHOLE], result.rounds_ms[name], strict=True)
    return statistics.median(whole / own for whole, own in pairs)


def format_table(result: Result) -> str:
    """A row for each contender, and why one has none."""
    lines = ["| weights, or peer | ms | times as fast as f32 | error |", "|---|---|---|---|"]
    for name in result.rounds_ms:
        cells = [name, format_ms(result.ms(name) or 0.0), f"{gain(result, name):.2f}"]
        lines.append(f"| {' | '.join([*cells, f'{result.errors.get(name, 0.0):.1e}'])} |")
    return "\n".join([*lines, *(f"{name}: {problem}" for name, problem in result.problems.items())])


def report(options: argparse.Namespace, result: Result, facts: Mapping[str, int]) -> None:
    """Prints the result as JSON or as a table."""
    if options.json:
        ms = {name: result.ms(name) for name in result.rounds_ms}
        print(json.dumps({**facts, **vars(result), "ms": ms}, indent=1))
        return
    print(
        f"One core, milliseconds for one token at place {options.position}, medians of {options.rounds} rounds; error: "
        "the largest difference over the largest magnitude.\n"
    )
    print(format_table(result))


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    shape = Shape()
    parser = make_parser(__doc__ or "", PEERS)
    parser.add_argument(
        "--precision", nargs="+", choices=(WHOLE, *PRECISIONS), default=list(PRECISIONS), help="default: all"
    )
    parser.add_argument("--position", type=int, default=300, choices=range(shape.places), metavar="N")
    options = parse_with(parser, argv, PEERS)
    tell("decode")
    setting = Setting(shape, options.position)
    result = run_setting(setting, options.precision, options.peers, options.rounds, options.seconds)
    report(options, result, {**vars(shape), "position": options.position})
    return 0


if __name__ == "__main__":
    restart_on_one_thread("benchmarks.decode")
    sys.exit(main())
