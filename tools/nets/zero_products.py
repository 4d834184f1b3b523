"""Products with zeros that native code has in its sums and eager mode has not, whose infinities and NaN spread farther.

Native code makes the gradient of a convolution with respect to its input, which a transposed convolution is, one
convolution of operands with zeros between and behind their elements. ``native_products`` computes it so in eager mode
too; ``only_spread`` says whether further NaN are all by which a result differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import graphc
from graphc.eager.dispatcher import EAGER
from graphc.ops.contraction.convolution import conv_grad_input


def _decomposed(g: np.ndarray, weight: np.ndarray, **attrs: Any) -> np.ndarray:
    with graphc.no_grad():
        rule: Any = conv_grad_input.op.decompose
        return rule(graphc.from_numpy(g), graphc.from_numpy(weight), **attrs).numpy()


@contextmanager
def native_products() -> Iterator[None]:
    """Make eager mode sum the same products as native code in the body."""
    before = EAGER._implementation
    EAGER._plans.clear()
    EAGER._implementation = lambda op: _decomposed if op is conv_grad_input.op else before(op)  # type: ignore[method-assign]
    try:
        yield
    finally:
        del EAGER._implementation
        EAGER._plans.clear()


def only_spread(direct: np.ndarray | None, native: np.ndarray | None) -> bool:
    """Return whether ``native``, with more products, is ``direct`` but for further NaN: nothing infinite or NaN became
    finite, and no finite number another one."""
    if direct is None or native is None or direct.dtype.kind != "f" or direct.shape != native.shape:
        return native is None if direct is None else native is not None and np.array_equal(direct, native)
    further = np.isfinite(direct) & np.isnan(native)
    return bool(np.all(further | (np.isfinite(direct) == np.isfinite(native))))
