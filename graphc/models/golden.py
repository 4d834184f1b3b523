"""Sample calls for model files: seeded inputs, and outputs of the reference interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.sizes.shape_patterns import ShapePatterns, as_pattern
from graphc.base.sizes.size import hint
from graphc.compiler.freeze import graph_arguments
from graphc.files.model_content import Sample
from graphc.ir.graph.graph import Graph, Value, input_class, input_equals, input_pattern
from graphc.ir.graph.interpret import assumed, bind, evaluate


def sample_calls(
    graph: Graph, state: Mapping[str, np.ndarray], examples: Sequence[np.ndarray], count: int
) -> tuple[Sample, ...]:
    """Return ``count`` sample calls of a graph with the params and states of ``state``, by path.

    The first call has the examples as inputs, or zeros for a graph without. In the others, floats have the examples'
    mean and spread. Integers and booleans are drawn from the examples' elements, so indices stay valid. Raise
    ArgumentError where inputs are numbers that are not tensors of the examples.
    """
    plain = [v for v in graph.inputs if input_class(v) == "input"]
    first = list(examples) or [np.zeros(_expected_shape(v), v.dtype.numpy) for v in plain]
    if len(first) != len(plain):
        raise ArgumentError(
            f"golden: @{graph.name} has {len(plain)} inputs, but {len(first)} examples are tensors",
            remedy="pass tensors instead of numbers, or golden=False",
        )
    patterns = ShapePatterns([input_pattern(v) for v in plain], [f"%{v.name}" for v in plain])
    sizes = patterns.solve([as_pattern(x, input_pattern(v)) for x, v in zip(first, plain, strict=True)])
    with assumed(graph):
        fixed = bind(graph, {d.name: n for d, n in sizes.items() if d.name in graph.dims}) if graph.dims else graph
    samples = []
    for number in range(count):
        rng = np.random.default_rng(number)
        inputs = [x if not number else _like(x, v, rng) for x, v in zip(first, plain, strict=True)]
        outputs = evaluate(fixed, graph_arguments(fixed, state, inputs))
        samples.append(Sample(tuple(np.array(x) for x in inputs), tuple(np.array(y) for y in outputs)))
    return tuple(samples)


def _expected_shape(value: Value) -> tuple[int, ...]:
    return tuple([hint(n) for n in value.shape])


def _like(example: np.ndarray, value: Value, rng: np.random.Generator) -> np.ndarray:
    """Return random numbers with the distribution of an input's example."""
    if input_equals(value) is not None or not example.size:
        return example
    if example.dtype.kind != "f":
        return rng.choice(example.reshape(-1), size=example.shape)
    spread = float(example.std()) or 1.0
    return np.asarray(rng.standard_normal(example.shape) * spread + float(example.mean()), example.dtype)
