"""Products of dequantized codes in PyTorch's graphs are computed from the codes, and are those of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc.interop.aten.codes import with_products_of_codes
from graphc.interop.aten.graph import AtenGraph, Ref, Step

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.fx._decomposed", reason="PyTorch registers the operators there")

OPS = torch.ops.quantized_decomposed
S8, U8 = (-128, 127, torch.int8), (0, 255, torch.uint8)
GENERATOR = np.random.default_rng(0)
BYTES = {"byte_matmul", "byte_conv"}


class Quantized(torch.nn.Module):
    """A product of a rounded input by a dequantized weight, as PT2E writes it."""

    def __init__(self, shape: tuple[int, ...], kind: str, signed: bool, product: Any, bias: bool = True):
        super().__init__()
        self.product, self.kind, self.form = product, kind, (*((S8, -9) if signed else (U8, 121)),)
        self.register_buffer("w", torch.from_numpy(GENERATOR.integers(-128, 128, shape).astype(np.int8)))
        self.register_buffer("s", torch.from_numpy((GENERATOR.random(shape[0]) * 0.01 + 0.01).astype(np.float32)))
        self.register_buffer("z", torch.from_numpy(GENERATOR.integers(-9, 9, shape[0])))
        self.b = torch.nn.Parameter(torch.from_numpy(GENERATOR.standard_normal(shape[0]).astype(np.float32)))
        self.has_bias = bias

    def forward(self, x: Any) -> Any:
        kind, zero = self.form
        if self.kind == "dynamic":
            scale, point = OPS.choose_qparams.tensor(x, kind[0], kind[1], 1e-5, kind[2])
            x = OPS.dequantize_per_tensor.tensor(
                OPS.quantize_per_tensor.tensor(x, scale, point, *kind), scale, point, *kind
            )
        else:
            x = OPS.dequantize_per_tensor(OPS.quantize_per_tensor(x, 0.0171, zero, *kind), 0.0171, zero, *kind)
        if self.kind == "channels":
            w = OPS.dequantize_per_channel(self.w, self.s, self.z, 0, *S8)
        else:
            w = OPS.dequantize_per_tensor(self.w, 0.013, 0, *S8)
        return self.product(x, w, self.b if self.has_bias else None)


def _linear(x: Any, w: Any, b: Any) -> Any:
    return torch.nn.functional.linear(x, w, b)


def _wide(x: Any, w: Any, b: Any) -> Any:
    return torch.nn.functional.linear(x.reshape(-1, w.shape[1]), w, b)


def _conv(x: Any, w: Any, b: Any) -> Any:
    return torch.nn.functional.conv2d(x, w, b, stride=(1, 2), padding=(2, 1), dilation=(1, 2))


def _conv1d(x: Any, w: Any, b: Any) -> Any:
    return torch.nn.functional.conv1d(x, w, b, 2, 1)


def _grouped(x: Any, w: Any, b: Any) -> Any:
    return torch.nn.functional.conv2d(x, w, b, groups=2)


PRODUCTS: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...], bool]] = {
    "linear": (_linear, (5, 12), (7, 12), True),
    "rows": (_linear, (2, 5, 12), (7, 12), True),
    "reshaped": (_wide, (2, 5, 12), (7, 12), True),
    "vector": (_linear, (12,), (7, 12), False),
    "conv": (_conv, (2, 3, 9, 9), (7, 3, 3, 2), True),
    "conv1d": (_conv1d, (2, 3, 19), (6, 3, 3), True),
    "unbatched": (_conv, (3, 9, 9), (7, 3, 3, 2), False),
    "grouped": (_grouped, (2, 4, 6, 6), (6, 2, 3, 3), False),
}


def _agree(module: Any, net: Any, x: Any, exact: bool) -> None:
    """Check results, eager and compiled, and whether they come from sums of bytes."""
    given = graphc.tensor(x.numpy())
    with torch.no_grad():
        expected = net(x).numpy()
    with graphc.no_grad():
        for call in (module, graphc.compile(module)):
            np.testing.assert_allclose(call(given).detach().numpy(), expected, rtol=1e-5, atol=1e-5)
        names = {node.op.name for node in graphc.trace(module, given).nodes()}
    assert bool(names & BYTES) is exact


@pytest.mark.parametrize("kind", ["tensor", "channels", "dynamic"])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_codes_are_exact_sums(name: str, signed: bool, kind: str):
    product, rows, weight, exact = PRODUCTS[name]
    net = Quantized(weight, kind, signed, product, bias=name != "rows")
    x = torch.from_numpy(GENERATOR.standard_normal(rows).astype(np.float32))
    exported = torch.export.export(net, (x,))
    _agree(graphc.from_torch(exported), net, x, exact)
    if name in ("linear", "conv", "reshaped"):
        _agree(graphc.from_torch(exported.run_decompositions()), net, x, exact)


def test_a_file_of_codes_is_read(tmp_path):
    net = Quantized((7, 12), "channels", True, _linear)
    x = torch.from_numpy(GENERATOR.standard_normal((5, 12)).astype(np.float32))
    torch.export.save(torch.export.export(net, (x,)), tmp_path / "net.pt2")
    _agree(graphc.from_pt2(tmp_path / "net.pt2"), net, x, True)


def test_the_bias_has_its_gradient():
    net = Quantized((7, 12), "channels", True, _linear)
    x = torch.from_numpy(GENERATOR.standard_normal((5, 12)).astype(np.float32))
    module = graphc.from_torch(torch.export.export(net, (x,)))
    module(graphc.tensor(x.numpy())).sum().backward()
    np.testing.assert_allclose(module.get_parameter("b").grad.numpy(), np.full(7, 5.0))


def _graph(*steps: Step, output: str) -> AtenGraph:
    return AtenGraph("main", ["x", "w", "v"], list(steps), Ref(output))


def _step(name: str, target: str, *args: Any, **kwargs: Any) -> Step:
    return Step(name, target, tuple(Ref(a) if isinstance(a, str) else a for a in args), kwargs)


DEQUANTIZE = "quantized_decomposed.dequantize_per_tensor.default"
ROWS = _step("dx", DEQUANTIZE, "x", 0.1, 3, -128, 127, graphc.int8)
WEIGHT = _step("dw", DEQUANTIZE, "w", 0.2, 0, -128, 127, graphc.int8)


def test_a_dequantized_operand_that_others_read_stays():
    steps = ROWS, WEIGHT, _step("y", "aten.linear.default", "dx", "dw"), _step("z", "aten.add.Tensor", "y", "dx")
    targets = [s.name for s in with_products_of_codes(_graph(*steps, output="z")).steps]
    assert targets == ["dx", "y", "z"]


@pytest.mark.parametrize(
    "changed",
    [
        (ROWS, _step("dw", DEQUANTIZE, "w", 0.2, 0, -128, 127, graphc.int16)),
        (ROWS, _step("dw", DEQUANTIZE, "w", 0.2, 0, -128, 127, graphc.int8, out_dtype=graphc.float16)),
        (_step("dx", "aten.relu.default", "x"), WEIGHT),
    ],
)
def test_products_of_other_values_stay(changed):
    graph = _graph(*changed, _step("y", "aten.linear.default", "dx", "dw"), output="y")
    assert [str(s) for s in with_products_of_codes(graph).steps] == [str(s) for s in graph.steps]


def test_a_graph_without_codes_is_the_same():
    graph = _graph(_step("y", "aten.mm.default", "x", "w"), output="y")
    assert with_products_of_codes(graph) is graph


def test_sums_that_exceed_32_bits_are_computed_in_f32():
    x = torch.full((1, 140000), 9.0)
    model = Quantized((2, 140000), "tensor", True, _linear, bias=False)
    model.w.fill_(127)
    module = graphc.from_torch(torch.export.export(model.eval(), (x,)))
    result, expected = module(graphc.from_numpy(x.numpy())).numpy(), model(x).detach().numpy()
    np.testing.assert_allclose(result, expected, rtol=2e-3)
