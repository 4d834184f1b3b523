"""The net of strict order: random ONNX graphs give the same bits on every target of this machine and with any threads.

``python -m tools.nets.strict_order --count 500 --seed 1``. The graphs are those of ``tools.nets.onnx_sizes``, each with
programs for its open sizes. Graphs that fit no step are ``dropped``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np

import graphc
from graphc.base.errors import CompileError, GraphcError
from graphc.compiler.ready import running_target
from tools.nets import run
from tools.nets.builder import Unfit
from tools.nets.onnx_graphs import STEPS, OnnxBuilder, drawn, names
from tools.nets.onnx_parts import PARTS
from tools.nets.onnx_sizes import DROPPED
from tools.nets.sized import quiet

TARGETS = ("sse2", "avx2", "avx512", "neon")
THREADS = (1, 2, 4)
SETS = 2
"""Sets of sizes that each program computes."""


def judge(name: str) -> run.Outcome:
    """Draw the graph of a name and compare the bits of its results."""
    seed, number = map(int, name.split("/"))
    try:
        builder = drawn(seed, number, (*STEPS, *PARTS))
        data = builder.model().SerializeToString()
    except Unfit:
        return run.Outcome(DROPPED, "no step fits")
    with quiet():
        try:
            return judged(builder, data)
        except GraphcError as error:
            return run.Outcome(run.REFUSED, f"{type(error).__name__}: {error}")
        except Exception as error:
            return run.Outcome(run.FAILED, f"{type(error).__name__}: {error}")


def judged(builder: OnnxBuilder, data: bytes) -> run.Outcome:
    """Compare the results of all targets and numbers of threads with those of the first ones."""
    first: list[bytes] = []
    for setting, bits in computed(builder, data):
        first = first or bits
        if bits != first:
            different = [number for number, (a, b) in enumerate(zip(bits, first, strict=True)) if a != b]
            return run.Outcome(run.DIFFERENT, f"{setting}: results {different} of {len(bits)}")
    return run.Outcome(run.EQUAL)


def computed(builder: OnnxBuilder, data: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the bits of all results, for each target that runs here and each number of threads."""
    module = graphc.from_onnx(data)
    for target in filter(_runs_here, TARGETS):
        call = graphc.compile(module, dims=module.dims, target=target, strict_order=True)
        for threads in THREADS:
            graphc.set_num_threads(threads)
            with graphc.no_grad():
                results = [call(*builder.feeds(number).values()) for number in range(SETS)]
            yield f"{target}, {threads} threads", [_bits(a.numpy()) for r in results for a in _several(r)]


def _runs_here(target: str) -> bool:
    try:
        running_target(target)
    except CompileError:
        return False
    return True


def _several(result: object) -> Sequence[graphc.Tensor]:
    return result if isinstance(result, tuple) else (result,)  # type: ignore[return-value]


def _bits(array: np.ndarray) -> bytes:
    """Return the bytes of an array, with one NaN for all."""
    if array.dtype.kind not in "fc":
        return array.tobytes()  # large integers are no floats
    return np.where(np.isnan(array), np.nan, array).astype(array.dtype).tobytes()


NET = run.Net("strict_order", (__doc__ or "").partition("\n")[0], names, judge, isolated=True)

if __name__ == "__main__":
    sys.exit(run.main(NET))
