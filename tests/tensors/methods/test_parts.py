"""Methods of complex tensors: parts that can be written to, printing, conversion, copies, files."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import graphc
from graphc.errors import DTypeError
from tests.tensors.against_torch import numbers


def test_parts_can_be_replaced():
    x = graphc.tensor([1 + 2j, 3 - 1j])
    x.real, x.imag = graphc.tensor([5.0, 6.0]), 7.0
    np.testing.assert_array_equal(x.numpy(), [5 + 7j, 6 + 7j])


def test_conjugates_are_tensors_of_their_own():
    x = graphc.tensor([1 + 2j])
    y = x.conj()
    y[0] = 0
    assert x.item() == 1 + 2j and not y.is_conj() and y.resolve_conj() is y
    assert x.is_complex() and not x.is_floating_point() and not x.real.is_complex()
    real = graphc.tensor([1.0, -2.0])
    assert real.real is real and real.conj() is real
    np.testing.assert_allclose(real.angle().numpy(), [0, np.pi], rtol=1e-6)


@pytest.mark.parametrize("values", [[1 + 2j, 0.5j], [-1 + 2j, 0.5 - 1j], 2 - 1j, [1e6 + 1j], [[1j, 2.5]]], ids=str)
def test_numbers_are_printed_as_pytorch_prints_them(torch, values):
    assert repr(graphc.tensor(values)) == repr(torch.tensor(values))


def test_conversions_copies_and_pickles():
    x = graphc.tensor(numbers(3))
    assert x.cfloat().dtype is graphc.complex64 and x.cfloat().cdouble().dtype is graphc.complex128
    assert graphc.tensor(2).to(graphc.complex64).item() == 2
    with pytest.warns(UserWarning, match="imaginary"):
        np.testing.assert_array_equal(x.to(graphc.float64).numpy(), x.numpy().real)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)).numpy(), x.numpy())
    assert (x.item() if x.numel() == 1 else x.tolist()) == x.numpy().tolist()


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "int32", "bool"])
def test_what_becomes_real_has_the_real_part_in_eager_mode_compiled_and_folded(torch, name):
    values, dtype = [1 + 2j, 70000 - 3j, 2j, -0.25 + 0j], getattr(graphc, name)
    x = graphc.tensor(values)
    made = [
        lambda: x.to(dtype),
        lambda: graphc.compile(lambda x: x.to(dtype))(x),
        lambda: graphc.compile(lambda y: (y, graphc.tensor(values).to(dtype)))(graphc.ones(1))[1],
        lambda: graphc.tensor(np.array(values), dtype=dtype),
        lambda: graphc.zeros(4, dtype=dtype).copy_(x),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        expected = torch.tensor(values).to(getattr(torch, name)).double().tolist()
    for make in made:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the conversion to a real tensor")
            warnings.simplefilter("error", RuntimeWarning)  # which numpy's own ones are
            assert make().double().tolist() == expected


def test_complex_numbers_in_arrays_lose_their_imaginary_parts_with_a_warning_and_numbers_do_not_lose_them():
    with pytest.warns(UserWarning, match="imaginary"):
        assert graphc.tensor(np.array([1 + 2j]), dtype=graphc.float32).tolist() == [1]
    for dtype in (graphc.float32, graphc.bfloat16, graphc.int32):
        with pytest.raises(DTypeError, match="cannot convert"):
            graphc.tensor([1 + 2j], dtype=dtype)
        with pytest.raises(DTypeError, match="cannot convert"):
            graphc.zeros(1, dtype=dtype).fill_(1 + 2j)


def test_states_go_through_files(tmp_path):
    module = graphc.nn.Module()
    module.weight = graphc.nn.Parameter(graphc.tensor(numbers(2, 3, dtype=np.complex64)))
    module.register_buffer("phase", graphc.tensor(numbers(4)))
    for name in ("state.pt", "state.npz"):
        path = tmp_path / name
        (graphc.save if name.endswith("pt") else graphc.save_state)(module.state_dict(), path)
        found = graphc.load_state(path)
        np.testing.assert_array_equal(found["weight"].detach().numpy(), module.weight.detach().numpy())
        np.testing.assert_array_equal(found["phase"].numpy(), module.phase.numpy())


def test_files_of_pytorch_hold_complex_numbers(torch, tmp_path):
    x = numbers(2, 3)
    torch.save({"w": torch.tensor(x)}, tmp_path / "w.pt")
    np.testing.assert_array_equal(graphc.load_state(tmp_path / "w.pt")["w"].numpy(), x)
    graphc.save({"w": graphc.tensor(x)}, tmp_path / "own.pt")
    np.testing.assert_array_equal(torch.load(tmp_path / "own.pt")["w"].numpy(), x)
