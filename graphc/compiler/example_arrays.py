"""Random arrays for the inputs and weights of a program that is to be timed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import BY_NAME, elements
from graphc.base.sizes.size import hint
from graphc.files.manifest import TensorSpec
from graphc.ir.kernel.dims import dims_of_program

if TYPE_CHECKING:
    from graphc.compiler.stages import Stages


def random_array(spec: TensorSpec, seed: int) -> Any:
    """Return normally distributed floats, or random zeros and ones for integers (small numbers are valid indices).

    Named dimensions have their expected size. An integer input gets the expected value of its size.
    """
    if spec.equals is not None:
        return hint(spec.equals)
    generator = np.random.default_rng(seed)
    dtype, shape = BY_NAME[spec.dtype], tuple(map(hint, spec.shape))
    values = generator.standard_normal(shape) if dtype.is_floating_point else generator.integers(0, 2, shape)
    return elements(values, dtype)


def expected_sizes(stages: Stages) -> dict[str, int]:
    """Return the sizes of the named dimensions that random arrays have."""
    return {dimension.name: dimension.hint for dimension in dims_of_program(stages.lowered).values()}


def example_arrays(stages: Stages, weights: Mapping[str, np.ndarray]) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Return random inputs, and weights by path; missing weights are random."""
    inputs: list[np.ndarray] = []
    filled_weights = dict(weights)
    for i, storage in enumerate(stages.lowered.storages):
        if storage.cls in ("input", "param", "state", "weight"):
            type = storage.outside
            spec = TensorSpec(storage.name, type.dtype.name, type.shape, equals=storage.equals)
            if storage.cls == "input":
                inputs.append(random_array(spec, i))
            else:
                filled_weights.setdefault(storage.path, random_array(spec, i))
    return inputs, filled_weights
