"""Sample calls for model files: seeded inputs, and outputs of the reference interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArgumentError
from graphc.base.sizes.size import hint
from graphc.compiler.freeze import graph_arguments
from graphc.files.manifest import TensorSpec
from graphc.files.model_content import Sample
from graphc.files.model_manifest import EntrySpec
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import assumed, bind, evaluate
from graphc.models.chain import Chain, Program
from graphc.models.sized_model import Sizes


def sample_calls(
    spec: EntrySpec,
    graphs: Sequence[Graph],
    state: Mapping[str, np.ndarray],
    examples: Sequence[np.ndarray],
    count: int,
) -> tuple[Sample, ...]:
    """Return ``count`` sample calls of an entry with the params and states of ``state``, by path. ``graphs`` has the
    graph of each program of the entry.

    The first call has the examples as inputs, or zeros for an entry without. In the others, floats have the examples'
    mean and spread. Integers and booleans are drawn from the examples' elements, so indices stay valid. Raise
    ArgumentError where inputs are numbers that are not tensors of the examples.
    """
    first = list(examples) or [np.zeros(tuple(map(hint, s.shape)), BY_NAME[s.dtype].numpy) for s in spec.inputs]
    if count and len(first) != len(spec.inputs):
        raise ArgumentError(
            f"golden: {spec.title} has {len(spec.inputs)} inputs, but {len(first)} examples are tensors",
            remedy="pass tensors instead of numbers, or golden=False",
        )
    chain, programs = Chain(spec), [_reference(graph, state) for graph in graphs]
    samples = []
    for number in range(count):
        rng = np.random.default_rng(number)
        inputs = [x if not number else _like(x, s, rng) for x, s in zip(first, spec.inputs, strict=True)]
        outputs = chain.run(inputs, programs)
        samples.append(Sample(tuple(np.array(x) for x in inputs), tuple(np.array(y) for y in outputs)))
    return tuple(samples)


def _reference(graph: Graph, state: Mapping[str, np.ndarray]) -> Program:
    """Return a program that runs a graph by the references of its ops."""

    def run(inputs: Sequence[Any], sizes: Sizes) -> Sequence[Any]:
        with assumed(graph):
            fixed = bind(graph, {d.name: n for d, n in sizes.items() if d.name in graph.dims}) if graph.dims else graph
        return evaluate(fixed, graph_arguments(fixed, state, list(inputs)))

    return run


def _like(example: np.ndarray, spec: TensorSpec, rng: np.random.Generator) -> np.ndarray:
    """Return random numbers with the distribution of an input's example."""
    if spec.equals is not None or not example.size:
        return example
    if example.dtype.kind != "f":
        return rng.choice(example.reshape(-1), size=example.shape)
    spread = float(example.std()) or 1.0
    return np.asarray(rng.standard_normal(example.shape) * spread + float(example.mean()), example.dtype)
