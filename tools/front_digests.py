"""Digests of the front end: they tell whether a change of the code changes traces, guards, calls, files or results.

``python -m tools.front_digests`` prints SHA-256 for 80 programs (random ones, workloads, examples): the text of the
traced graph; its guards with the lines where their values were read; the number of Python functions of graphc that a
second and third call of the compiled program enters; the bytes of model files; and the bits that eager mode computes
for every sample of every op. ``--json`` prints a report for ``--compare FILE``, as ``tools.digests`` does. ``--calls``
prints instead how many functions of graphc each of the first calls enters, and how often one package calls another.
Drawing the random programs needs PyTorch.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import graphc
from benchmarks.harness import framework as fw
from benchmarks.workloads import WORKLOADS
from graphc.errors import GraphcError
from graphc.ir.graph.text import print_graph
from graphc.ir.op import REGISTRY
from graphc.ops import dispatch, registry
from graphc.tracing.trace import no_collector, trace_function
from tools.digests import add_outputs, digest, output
from tools.floors import floor_of
from tools.nets.builder import Unfit
from tools.nets.families.table import draw

assert registry.FAMILIES, "the names of all ops"

RANDOM_PROGRAMS = 58
RANDOM_SEED = 35
NETS = (
    *("policy_b1", "net_b1", "net_b64", "mlp_b1", "mlp_b64", "lstm_b1_t64", "pointwise_64K", "rownorm_4096x1024"),
    *("mobilenet_b1", "unet_b1", "vit_b1", "gpt_b1_t128", "gru_b8_t64", "autoencoder_b16", "tcn_b8", "textcnn_b8"),
    *("dlrm_b8", "llama_b1_t64", "minilm_b1_t128", "resnet50_b1"),
)
"""Workloads whose graphs are traced."""
CALLED = ("policy_b1", "net_b1", "mlp_b1", "lstm_b1_t64", "textcnn_b8")
"""Workloads that are also compiled, called and exported."""
SCRIPTS = ("closure", "counter")
PACKAGE_ROOT = Path(graphc.__file__).parent.as_posix()
CALLS = 3
FRONT = "front door"


class Program(NamedTuple):
    """A function or module, and example arguments."""

    name: str
    target: Callable[..., Any]
    inputs: Sequence[Any]
    called: bool
    """Whether it is compiled and called, too."""


def random_programs(count: int) -> Iterator[Program]:
    """Yield the first random programs that can be drawn."""
    number = drawn = 0
    while drawn < count:
        try:
            program = draw(RANDOM_SEED, number)
        except Unfit:
            program = None
        if program is not None:
            drawn += 1
            called = drawn % 4 == 0
            yield Program(f"random/{number}", program.net(graphc), program.tensors(graphc), called)
        number += 1


def nets() -> Iterator[Program]:
    """Yield the workloads in evaluation mode."""
    for name in NETS:
        workload = WORKLOADS[name]
        model = fw.build_model(graphc, workload)
        yield Program(f"net/{name}", model, fw.convert_inputs(graphc, workload), name in CALLED)


def scripts() -> Iterator[Program]:
    """Yield functions that read globals, closures and attributes, and write state."""
    graphc.manual_seed(0)
    layer, factors = graphc.nn.Linear(4, 4), {"scale": 2.0, "names": ["a", "b"]}
    counter = graphc.nn.BatchNorm1d(4).train()

    def closure(x: Any) -> Any:
        """Read a closure: a dictionary, a list and a module."""
        return layer(x) * factors["scale"] + len(factors["names"])

    def count(x: Any) -> Any:
        """Write buffers of a module."""
        return counter(x).sum()

    x = graphc.tensor(np.arange(8, dtype=np.float32).reshape(2, 4))
    for name, function in zip(SCRIPTS, (closure, count), strict=True):
        yield Program(f"script/{name}", function, [x], called=True)


def programs(count: int = RANDOM_PROGRAMS) -> Iterator[Program]:
    """Yield all programs, ``count`` random ones among them, each made when it is needed."""
    yield from random_programs(count)
    yield from nets()
    yield from scripts()


def guard_text(guard: Any) -> str:
    """Return the description of a guard and the line where its value was read; lines inside graphc are left out."""
    location = re.sub(rf"{re.escape(PACKAGE_ROOT)}/\S+", "graphc", str(guard.read_at))
    location = location.replace(Path(PACKAGE_ROOT).parent.as_posix(), "")
    return re.sub(r"0x[0-9a-f]+", "0x", f"{guard.title} ({location})" if location else guard.title)


def traced_digests(program: Program) -> Iterator[tuple[str, str]]:
    """Yield digests of the graph and the guards of one program, or of the error that tracing raises."""
    try:
        traced = trace_function(program.target, program.inputs, guarded=True)
    except GraphcError as error:
        yield f"{program.name} error", type(error).__name__
        return
    yield f"{program.name} graph", digest(print_graph(traced.graph))
    guards = sorted(map(guard_text, traced.attributes.facts.values()))
    yield f"{program.name} guards", digest("\n".join(guards))


class CallCount:
    """Counts the functions of graphc that run, and how often a call goes from one of its packages to another."""

    def __init__(self) -> None:
        self.functions = 0
        self.changes: Counter[tuple[str, str]] = Counter()
        """Calls by package of the caller and of the function called."""

    def __enter__(self) -> CallCount:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_error: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call":
            return
        callee = package_of(frame.f_code.co_filename)
        if not callee:
            return
        self.functions += 1
        outer, caller = frame.f_back, ""
        while outer is not None and not caller:
            caller = package_of(outer.f_code.co_filename)
            outer = outer.f_back
        if caller and caller != callee:
            self.changes[caller, callee] += 1


@cache
def package_of(filename: str) -> str:
    """Return the listed package (``tools.floors``) in which a file lies, or an empty text for files elsewhere."""
    inside = filename.removeprefix(f"{PACKAGE_ROOT}/")
    if inside == filename:
        return ""
    return floor_of(f"graphc/{inside}".removesuffix(".py").replace("/", ".")) or FRONT


def count_calls(program: Program) -> list[CallCount]:
    """Compile a program and count the work of each of its first calls. `warm_up` has compiled another program before,
    so that late imports do not count."""
    run = graphc.compile(program.target)
    counts = []
    gc.collect()
    with graphc.no_grad(), no_collector():
        for _ in range(CALLS):
            with CallCount() as count:
                run(*program.inputs)
            counts.append(count)
    return counts


def warm_up() -> None:
    """Load the modules that the first compiled call of a process loads."""
    with graphc.no_grad():
        graphc.compile(lambda x: (x * 2.0).sum())(graphc.ones(3))


def called_digests(program: Program) -> Iterator[tuple[str, str]]:
    """Yield the number of calls, and digests of model files."""
    try:
        counts = count_calls(program)
    except GraphcError as error:
        yield f"{program.name} calls", type(error).__name__
        return
    for number, count in list(enumerate(counts, 1))[1:]:  # the first one runs finalizers, whose number varies
        yield f"{program.name} call{number}", str(count.functions)
    if program.name.startswith("net/"):
        with tempfile.TemporaryDirectory(prefix="graphc-front-") as folder:
            path = Path(folder) / "model.gcm"
            graphc.export(program.target, *program.inputs, path=path)
            yield f"{program.name} file", digest(path.read_bytes())


def eager_digests() -> Iterator[tuple[str, str]]:
    """Yield digests of the bits that eager mode computes for the samples of each op."""
    for op in REGISTRY.values():
        bits = []
        for sample in op.samples() if op.samples else ():
            tensors = [graphc.from_numpy(np.array(array)) for array in sample.operands]
            try:
                with graphc.no_grad():
                    results = dispatch.current().apply(op, tensors, op.normalize(sample.attrs))
            except GraphcError as error:
                bits.append(type(error).__name__)  # types that only compiled programs know
                continue
            for result in results if isinstance(results, tuple) else (results,):
                array = result.numpy()
                bits.append(f"{array.dtype} {array.shape} {digest(np.ascontiguousarray(array).tobytes())}")
        if bits:
            yield f"op/{op.name} eager", digest("\n".join(bits))


def compute() -> Iterator[tuple[str, str]]:
    """Yield the digests of all programs, and those of the samples of all ops."""
    warm_up()
    for program in programs():
        yield from traced_digests(program)
        if program.called:
            yield from called_digests(program)
    yield from eager_digests()


def print_calls() -> None:
    """Print for each called program the number of functions and package changes of each of its first calls."""
    warm_up()
    print(f"{'program':24}{'functions':>24}{'package changes':>24}{'pairs of packages':>24}")
    for program in programs():
        if program.called and program.name.startswith(("net/", "script/")):
            counts = count_calls(program)
            functions, changes, pairs = (
                " ".join(map(str, figures))
                for figures in (
                    [c.functions for c in counts],
                    [c.changes.total() for c in counts],
                    [len(c.changes) for c in counts],
                )
            )
            print(f"{program.name:24}{functions:>24}{changes:>24}{pairs:>24}")


def main(argv: Sequence[str] | None = None) -> int:
    """Print or compare; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.front_digests", description=(__doc__ or "").partition("\n")[0]
    )
    add_outputs(parser)
    parser.add_argument(
        "--calls", action="store_true", help="count the functions and package changes of the first calls"
    )
    options = parser.parse_args(argv)
    os.environ.update(GRAPHC_CACHE="off", GRAPHC_COMPILE_THREADS="1", GRAPHC_THREADS="1", GRAPHC_PROGRESS="off")
    if options.calls:
        print_calls()
        return 0
    return output(compute(), options)


if __name__ == "__main__":
    sys.exit(main())
