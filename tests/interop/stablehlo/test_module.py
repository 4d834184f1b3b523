"""``from_stablehlo`` and its module."""

import pickle

import numpy as np
import pytest

import graphc as gc
from graphc.base.dtypes import BY_NAME
from graphc.interop.stablehlo.module import count_leaves, read_stablehlo
from graphc.tensors.structure import LEAF, Branch, Static, flatten
from tests.interop.stablehlo.kept import arrays_of, check_results, text_of

TEXT = """module @square {
  func.func @main(%x: tensor<3xf64>, %y: tensor<3xf64>) -> (tensor<3xf64>, tensor<f64>) {
    %c = stablehlo.constant dense<0.0> : tensor<f64>
    %0 = stablehlo.multiply %x, %y : tensor<3xf64>
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0]
      : (tensor<3xf64>, tensor<f64>) -> tensor<f64>
    return %0, %1 : tensor<3xf64>, tensor<f64>
  }
}"""


def test_gradients_pass_through_the_program():
    x = gc.tensor([1.0, 2.0, 3.0], dtype=gc.float64, requires_grad=True)
    gc.from_stablehlo(TEXT)(x, x.detach())[1].backward()
    assert x.grad.tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", ["scan", "lstm", "adam"])
def test_gradients_pass_through_counted_loops(name):
    """Compiled, these loops are scans; eagerly, autograd records each of their steps."""
    arguments = [gc.tensor(a) for a in arrays_of(name, "in")]
    floats = tuple(i for i, a in enumerate(arguments) if a.dtype.is_floating_point)

    def gradients(checkpoint):
        module = gc.from_stablehlo(text_of(name), checkpoint=checkpoint)
        graph = str(gc.trace(module, *arguments))
        assert "while_loop" not in graph and "scan(" in graph
        return gc.grad(lambda *a: sum(r.cos().sum() for r in flatten(module(*a))[0] if r.is_floating_point()), floats)

    eager = gradients(False)(*arguments)
    for checkpoint in (False, 2):
        for a, b in zip(eager, gc.compile(gradients(checkpoint))(*arguments), strict=True):
            np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-9, atol=1e-12)


def test_a_loop_without_a_bound_has_no_gradient():
    text = """func.func @main(%x: tensor<f64>) -> tensor<f64> {
      %half = stablehlo.constant dense<0.5> : tensor<f64>
      %0 = stablehlo.while(%value = %x) : tensor<f64>
      cond {
        %1 = stablehlo.compare GT, %value, %half, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.multiply %value, %half : tensor<f64>
        stablehlo.return %1 : tensor<f64>
      }
      return %0 : tensor<f64>
    }"""
    module, x = gc.from_stablehlo(text), gc.tensor(5.0, dtype=gc.float64)
    with pytest.raises(gc.errors.GradientError, match=r"in JAX use lax\.scan"):
        gc.compile(gc.grad(module.forward))(x)
    assert gc.grad(module.forward)(x).item() == 0.5**4


def test_files_are_read(tmp_path):
    (tmp_path / "square.mlir").write_text(TEXT)
    assert read_stablehlo(tmp_path / "square.mlir").program.name == "square"
    (tmp_path / "binary.mlir").write_bytes(b"ML\xefR\x01")
    with pytest.raises(gc.errors.ParseError, match="is no text"):
        read_stablehlo(tmp_path / "binary.mlir")


def test_modules_have_examples_names_and_copies():
    module = gc.from_stablehlo(TEXT)
    assert [tuple(e.shape) for e in module.examples()] == [(3,), (3,)] and type(module)(module.program)
    x = np.array([1.0, 2.0, 3.0])
    copy = pickle.loads(pickle.dumps(module))
    assert [r.tolist() for r in copy(x, x)] == [[1, 4, 9], 14]
    assert str(gc.trace(module, *module.examples())).startswith("graph @square")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((np.zeros(3),), gc.errors.ArgumentError, "expected 2 values, got 1"),
        ((np.zeros(3), np.zeros(4)), gc.errors.ShapeError, r"argument 1 has shape \[4\], the program takes \[3\]"),
        ((np.zeros(3), np.zeros(3, np.float32)), gc.errors.DTypeError, "argument 1 is float32"),
    ],
)
def test_other_arguments_are_errors(arguments, error, message):
    with pytest.raises(error, match=message):
        gc.from_stablehlo(TEXT)(*arguments)


def test_other_values_than_texts_are_errors():
    with pytest.raises(gc.errors.ArgumentError, match="takes the text of a module, got bytes"):
        gc.from_stablehlo(b"module {}")


def test_leaves_of_structures_are_counted():
    assert count_leaves(Branch(dict, ("a", "b"), (LEAF, Branch(tuple, (), (LEAF, Static(None)))))) == 2


def test_a_training_step_of_jax_becomes_a_file_and_a_library(tmp_path):
    module, arguments = gc.from_stablehlo(text_of("training_step")), arrays_of("training_step", "in")
    with gc.no_grad():
        gc.export(module, *arguments, path=tmp_path / "step.gcm")
        gc.build_library(module, *arguments, path=tmp_path / "step.so")
    check_results(gc.load(tmp_path / "step.gcm")(*arguments), arrays_of("training_step", "out"))
    assert (tmp_path / "step.so").stat().st_size > 1000


def test_bf16_constants_keep_their_type():
    text = """func.func @main() -> tensor<2xbf16> {
      %0 = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xbf16>
      return %0 : tensor<2xbf16>
    }"""
    result = gc.from_stablehlo(text)()
    assert result.dtype is BY_NAME["bf16"] and result.to(gc.float32).tolist() == [1.5, -2]
