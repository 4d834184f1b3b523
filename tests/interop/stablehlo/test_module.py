"""``from_stablehlo`` and its module."""

import pickle

import numpy as np
import pytest

import graphc as gc
from graphc.base.dtypes import BY_NAME
from graphc.interop.stablehlo.module import count_leaves
from graphc.tensors.structure import LEAF, Branch, Static
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
