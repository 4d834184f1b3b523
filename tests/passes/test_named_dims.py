"""Graphs with named dimensions through the whole pipeline: optimized once, they mean the same at every size."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from graphc.base.sizes.size import Dimension
from graphc.ir.graph.graph import Graph, input_class
from graphc.ir.graph.interpret import Evaluator, bind
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.op import OpDef
from graphc.ops.autodiff import vjp_graph
from graphc.passes.base import Pass
from graphc.passes.batchnorm import BatchNormFolding
from graphc.passes.canonicalize import Canonicalize
from graphc.passes.checks import SettleChecks
from graphc.passes.fold import ConstantFolding
from graphc.passes.padded_sums import JoinPaddedParts
from graphc.passes.pipeline import optimize
from graphc.passes.precision import PRECISIONS, narrow_weights
from graphc.passes.rematerialize import Rematerialize
from graphc.passes.winograd import Winograd
from tests.ops.named import every_naming
from tests.ops.test_named_dims import OPS, UNPROVEN, compare, may_ask
from tests.passes.check_pass import check_equal

MOST_NAMINGS = 2
"""Namings of an op that go through the whole pipeline; those of its rules are tried in tests/ops."""
FILES = sorted((Path(__file__).parent / "named").glob("*.gc"))
"""Graphs as traces give them. Those that end in ``_loss`` are differentiated with respect to params and floats."""


def read(path: Path) -> Graph:
    graph = parse_graph(path.read_text())
    if not path.stem.endswith("_loss"):
        return graph
    return vjp_graph(graph, [v for v in graph.inputs if v.dtype.kind == "f" and v.name != "y"], [0], unit=True)


def sizes_to_try(dims: dict[str, Dimension]) -> Iterator[dict[str, int]]:
    """The least sizes and those after them, the expected ones and those beside them, and each dimension alone small."""
    for base, more in (("low", 0), ("low", 1), ("low", 2), ("hint", 0), ("hint", 1), ("hint", -1)):
        yield {n: min(max(getattr(d, base) + more, d.low), d.high) for n, d in dims.items()}
    for small in dims if len(dims) > 1 else ():
        yield {n: d.low if n == small else min(d.hint + 3, d.high) for n, d in dims.items()}


def arguments(graph: Graph) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    results = []
    for value in graph.inputs:
        if value.dtype.kind == "f":
            array = random.uniform(-1, 1, value.shape)
            array = array + 1.5 if input_class(value) == "state" else array  # variances are not negative
        else:
            array = random.integers(0, 2 if value.dtype.kind == "b" else 5, value.shape)
            np.atleast_1d(array)[..., :1] = 1  # a mask leaves something of each row
        results.append(array.astype(value.dtype.numpy))
    return results


def meaning(graph: Graph, given: list[np.ndarray]) -> list[np.ndarray]:
    evaluator = Evaluator()
    outputs = evaluator.run(graph, given)
    return [*outputs, *(evaluator.state[path] for path in sorted(evaluator.state))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_graph_that_was_optimized_for_all_sizes_means_the_same_at_each(path: Path):
    graph = read(path)
    optimized = optimize(graph)
    verify_graph(optimized)
    assert list(optimized.dims) == list(graph.dims)
    for sizes in sizes_to_try(graph.dims):
        bound, fixed = bind(optimized, sizes), bind(graph, sizes)
        verify_graph(bound)
        given = arguments(fixed)
        expected = meaning(fixed, given)
        for result, expected_result in zip(meaning(bound, given), expected, strict=True):
            assert result.shape == expected_result.shape
            largest = float(np.abs(expected_result).max(initial=1))
            np.testing.assert_allclose(result, expected_result, rtol=1e-3, atol=1e-4 * largest, err_msg=str(sizes))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_at_the_expected_sizes_it_is_the_graph_that_is_made_for_these(path: Path):
    """But for numbers that follow from sizes, which calls compute."""
    graph = read(path)
    hints = {name: d.hint for name, d in graph.dims.items()}
    fixed, bound = (operations(g) for g in (optimize(bind(graph, hints)), bind(optimize(graph), hints)))
    assert fixed == bound


def operations(graph: Graph) -> list[str]:
    """Names of the ops that compute more than one number from the arguments."""
    return sorted(n.op.name for n in graph.nodes() if n.op.name != "constant" and any(r.shape for r in n.results))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_batch_may_be_empty(path: Path, tmp_path: Path):
    text = path.read_text()
    wider = tmp_path / path.name
    wider.write_text(text.replace("dim batch = 1..", "dim batch = 0.."))
    graph = read(wider)
    sizes = {name: 0 if name == "batch" else d.hint for name, d in graph.dims.items()}
    fixed, bound = bind(graph, sizes), bind(optimize(graph), sizes)
    given = arguments(fixed)
    with np.errstate(all="ignore"):  # means of nothing
        for result, expected in zip(meaning(bound, given), meaning(fixed, given), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.sampled(50)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_op_and_its_gradient_mean_the_same_at_every_size(op: OpDef):
    proven = [n for n in every_naming(op) if (op.name, tuple(n.places)) not in UNPROVEN and not may_ask(n)]
    for naming in proven[:MOST_NAMINGS]:
        compare(naming, optimize)
        if op.vjp is not None:
            compare(naming, optimized_gradient)


def optimized_gradient(graph: Graph) -> Graph | None:
    wrt = [v for v in graph.inputs if v.dtype.kind == "f"]
    return optimize(vjp_graph(graph, wrt)) if wrt and any(v.dtype.kind == "f" for v in graph.outputs) else None


# ---- narrow weights


WEIGHTS = """
dim batch = 1..4 hint 2
dim time = 1..16 hint 8
graph @f(
    %x: f32[batch,time,128],
    %i: i64[batch,time],
    %w: f32[64,128] param "w",
    %e: f32[64,128] param "e",
    %k: f32[16,64,3,3] param "k"
) -> (f32[batch,time,64], f32[batch,16,time]) {
  %g = gather(%e, %i) {axis=0} : f32[batch,time,128]
  %a = add(%x, %g) : f32[batch,time,128]
  %y = matmul(%a, %w) {transpose_b=true} : f32[batch,time,64]
  %t = transpose(%y) {permutation=[0, 2, 1]} : f32[batch,64,time]
  %r = reshape(%t) {shape=[batch, 64, time, 1]} : f32[batch,64,time,1]
  %c = conv(%r, %k) {stride=[1, 1], padding=[[1, 1], [1, 1]], dilation=[1, 1], groups=1} : f32[batch,16,time,1]
  %q = reshape(%c) {shape=[batch, 16, time]} : f32[batch,16,time]
  return %y, %q
}
"""


@pytest.mark.parametrize("precision", PRECISIONS)
def test_weights_are_stored_narrow_whatever_the_number_of_rows(precision: str):
    graph = parse_graph(WEIGHTS.lstrip())
    narrowed = narrow_weights(optimize(graph), precision)
    optimized = optimize(narrowed.graph)
    for sizes in sizes_to_try(graph.dims):
        given = bind(graph, sizes)
        fixed = narrow_weights(optimize(given), precision)
        assert (narrowed.count, narrowed.saved, narrowed.decisions) == (fixed.count, fixed.saved, fixed.decisions)
        known = {v.name: a for v, a in zip(given.inputs, arguments(given), strict=True)}
        arrays = [narrowed.params.get(v.name, (v.name, np.asarray)) for v in optimized.inputs]
        stored = [make(known[name]) for name, make in arrays]
        for a, b in zip(meaning(bind(optimized, sizes), stored), meaning(optimize(fixed.graph), stored), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * float(np.abs(b).max()))


# ---- single passes

HEAD = "dim m = 0..9 hint 4\ndim n = 1..64 hint 16\n"
DECIDED = [
    pytest.param(
        Canonicalize(),
        "(%x: f32[n,5]) -> (f32[n,5], f32[n])",
        """
        %a = flip(%x) {axes=[0]} : f32[n,5]
        %b = slice(%x) {starts=[0, 1], stops=[n, 4], steps=[1, 1]} : f32[n,3]
        %c = slice(%b) {starts=[0, 1], stops=[n, 2], steps=[1, 1]} : f32[n,1]
        %d = reshape(%c) {shape=[n]} : f32[n]
        return %a, %d
        """,
        """
        %a = flip(%x) {axes=[0]} : f32[n,5]
        %c = slice(%x) {starts=[0, 2], stops=[n, 3], steps=[1, 1]} : f32[n,1]
        %d = reshape(%c) {shape=[n]} : f32[n]
        return %a, %d
        """,
        id="what has elements is sliced once, and may have several to be flipped",
    ),
    pytest.param(
        Canonicalize(),
        "(%x: f32[4*m]) -> (f32[m])",
        """
        %a = slice(%x) {starts=[0], stops=[4*m], steps=[2]} : f32[2*m]
        %b = slice(%a) {starts=[0], stops=[2*m], steps=[2]} : f32[m]
        return %b
        """,
        None,
        id="what may be empty is sliced twice",
    ),
    pytest.param(
        Canonicalize(),
        "(%x: f32[n]) -> (f32[])",
        """
        %a = broadcast_to(f32(3.0)) {shape=[n]} : f32[n]
        %b = sum(%a) {axes=[0]} : f32[]
        return %b
        """,
        """
        %size = size() {value=n} : i64[]
        %cast = cast(%size) {dtype=f64} : f64[]
        %mul = mul(%cast, f64(3.0)) : f64[]
        %b = cast(%mul) {dtype=f32} : f32[]
        return %b
        """,
        id="equal numbers are counted",
    ),
    pytest.param(
        Canonicalize(),
        "(%x: f32[2,n,3], %w: f32[3,4]) -> (f32[2,n,4])",
        """
        %a = matmul(%x, %w) : f32[2,n,4]
        return %a
        """,
        """
        %reshape = reshape(%x) {shape=[2*n, 3]} : f32[2*n,3]
        %matmul = matmul(%reshape, %w) : f32[2*n,4]
        %a = reshape(%matmul) {shape=[2, n, 4]} : f32[2,n,4]
        return %a
        """,
        id="a batch of rows is one long product",
    ),
    pytest.param(
        Canonicalize(),
        "(%x: f32[n]) -> (i64[], i64[])",
        """
        %a = size() {value=n} : i64[]
        %b = size() {value=7} : i64[]
        return %a, %b
        """,
        """
        %a = size() {value=n} : i64[]
        return %a, i64(7)
        """,
        id="a size that is known is a number",
    ),
    pytest.param(
        ConstantFolding(),
        "(%x: f32[n]) -> (f32[n], f32[2])",
        """
        %a = mul(f32(2.0), f32(3.0)) : f32[]
        %b = broadcast_to(%a) {shape=[n]} : f32[n]
        %c = exp(%b) : f32[n]
        %d = constant() {value=f32[2](1.0, 2.0)} : f32[2]
        %e = pad(%d) {low=[n], high=[-n], interior=[0]} : f32[2]
        return %c, %e
        """,
        """
        %b = broadcast_to(f32(6.0)) {shape=[n]} : f32[n]
        %c = exp(%b) : f32[n]
        %d = constant() {value=f32[2](1.0, 2.0)} : f32[2]
        %e = pad(%d) {low=[n], high=[-n], interior=[0], value=0} : f32[2]
        return %c, %e
        """,
        id="what depends on sizes is computed in calls",
    ),
    pytest.param(
        SettleChecks(),
        "(%x: f32[n,4], %w: f32[64,4], %i: i64[n]) -> (f32[n,4], f32[n,4], f32[n,4])",
        """
        %p = iota() {shape=[n], axis=0, dtype=i64} : i64[n]
        %a = check_index(%p) {low=0, high=63} : bool[]
        %y = gather(%w, %p) {axis=0} : f32[n,4]
        %q = sub(%p, i64(-1)) : i64[n]
        %r = clamp(%q, i64(0), i64(63)) : i64[n]
        %b = check_index(%r) {low=0, high=63} : bool[]
        %z = gather(%w, %r) {axis=0} : f32[n,4]
        %c = check_index(%p) {low=0, high=n - 1} : bool[]
        %d = check_index(%q) {low=0, high=n - 1} : bool[]
        %e = check_index(%i) {low=0, high=n - 1} : bool[]
        %v = gather(%x, %i) {axis=0} : f32[n,4]
        return %y, %z, %v
        """,
        """
        %p = iota() {shape=[n], axis=0, dtype=i64} : i64[n]
        %y = gather(%w, %p) {axis=0} : f32[n,4]
        %q = sub(%p, i64(-1)) : i64[n]
        %r = clamp(%q, i64(0), i64(63)) : i64[n]
        %z = gather(%w, %r) {axis=0} : f32[n,4]
        %d = check_index(%q) {low=0, high=n - 1, allowed=[], what="index"} : bool[]
        %e = check_index(%i) {low=0, high=n - 1, allowed=[], what="index"} : bool[]
        %v = gather(%x, %i) {axis=0} : f32[n,4]
        return %y, %z, %v
        """,
        id="positions are known to be less than there are",
    ),
    pytest.param(
        JoinPaddedParts(),
        "(%x: f32[n]) -> (f32[2*n])",
        """
        %a = pad(%x) {low=[0], high=[n], interior=[0], value=0} : f32[2*n]
        %b = pad(%x) {low=[n], high=[0], interior=[0], value=0} : f32[2*n]
        %c = add(%a, %b) : f32[2*n]
        return %c
        """,
        None,
        id="parts of which the places are not known are added",
    ),
]


@pytest.mark.parametrize(("step", "head", "before", "after"), DECIDED)
def test_a_pass_does_what_is_right_for_all_sizes(step: Pass, head: str, before: str, after: str | None):
    def written(body: str) -> str:
        used = "".join(line + "\n" for line in HEAD.splitlines() if line.split()[1] in re.findall(r"\b[mn]\b", head))
        return f"{used}graph @f{head} {{\n{textwrap.indent(textwrap.dedent(body).strip(), '  ')}\n}}\n"

    result = step.run(parse_graph(written(before)))
    verify_graph(result.graph)
    assert result.graph == parse_graph(written(before if after is None else after))
    assert (result.changed == 0) is (after is None)


PRODUCT = """
dim n = 1..4096 hint {}
graph @f(%x: f32[n,64], %w: f32[64,8] param "w", %s: f32[8] param "s") -> (f32[n,8]) {{
  %y = matmul(%x, %w) : f32[n,8]
  %m = mul(%y, %s) : f32[n,8]
  return %m
}}
"""


@pytest.mark.parametrize(("hint", "folded"), [(16, False), (4096, True)])
def test_weights_are_scaled_where_expected_sizes_make_that_pay(hint: int, folded: bool):
    assert bool(BatchNormFolding().run(parse_graph(PRODUCT.format(hint).lstrip())).changed) is folded


IMAGE = """
dim {name} = 1..64 hint {hint}
graph @f(%x: f32[{batch},64,{side},30], %w: f32[64,64,3,3] weight "w") -> (f32[{batch},64,{side} - 2,28]) {{
  %y = conv(%x, %w) {{stride=[1, 1], padding=[[0, 0], [0, 0]], dilation=[1, 1], groups=1}} : f32[{batch},64,{result},28]
  return %y
}}
"""


def test_images_of_one_size_are_convolved_by_tiles_however_many_there_are():
    text = IMAGE.format(name="batch", hint=8, batch="batch", side=30, result=28).replace("30 - 2", "28").lstrip()
    result = Winograd().run(parse_graph(text))
    assert "times less work by tiles of 4x4" in result.reasons[0]
    verify_graph(result.graph)
    for batch in (1, 2, 7):
        fixed, bound = bind(parse_graph(text), {"batch": batch}), bind(result.graph, {"batch": batch})
        check_equal(fixed, bound, rtol=1e-3, atol=1e-3)


def test_images_of_whole_tiles_are_convolved_by_these_whatever_their_size():
    text = IMAGE.format(name="k", hint=2, batch=2, side="16*k", result="16*k - 2").replace("1..64", "1..4")
    text = text.replace("[[0, 0],", "[[1, 1],").replace("16*k - 2", "16*k").lstrip()
    graph = parse_graph(text)
    result = optimize(graph)
    assert "winograd_input" in {n.op.name for n in result.nodes()}
    for k in (1, 3):
        check_equal(bind(graph, {"k": k}), bind(result, {"k": k}), rtol=1e-3, atol=2e-3)


def test_images_of_other_sizes_are_convolved_directly_and_it_is_said_why():
    text = IMAGE.format(name="side", hint=30, batch=2, side="side", result="side - 2").replace("1..64", "3..64")
    result = Winograd().run(parse_graph(text.lstrip()))
    reason = "%y: no tiles, for sizes that are known at run time decide how many there are"
    assert (result.changed, result.reasons) == (0, (reason,))


ROWS = """
dim n = 1..4096 hint {}
graph @f(%x: f32[n,2], %y: f32[n,2]) -> (f32[n,n]) {{
  %a = matmul(%x, %y) {{transpose_b=true}} : f32[n,n]
  %p = exp(%a) : f32[n,n]
  %o = matmul(%p, %y) : f32[n,2]
  %d = matmul(%o, %y) {{transpose_b=true}} : f32[n,n]
  %r = mul(%p, %d) : f32[n,n]
  return %r
}}
"""


@pytest.mark.parametrize(("hint", "again"), [(16, 0), (4096, 1)])
def test_values_are_computed_again_where_they_are_expected_to_be_large(hint: int, again: int):
    result = Rematerialize().run(parse_graph(ROWS.format(hint).lstrip()))
    assert result.changed == again
    assert all("4*n*n bytes are computed again" in reason for reason in result.reasons)
