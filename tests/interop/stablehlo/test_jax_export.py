"""JAX functions as modules, compared with JAX itself."""

from typing import NamedTuple

import numpy as np
import pytest

import graphc as gc
from tests.interop.stablehlo.kept import NAMES, check_results, text_of

jax = pytest.importorskip("jax", reason="compares with JAX")
jnp = pytest.importorskip("jax.numpy")
tool = pytest.importorskip("tools.stablehlo.__main__")
CASES = tool.CASES


@pytest.mark.parametrize("name", sorted(CASES))
def test_functions_give_what_jax_gives(name):
    function, arguments = CASES[name]
    module = gc.from_jax(function, *arguments)
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(*arguments))]
    with gc.no_grad():
        check_results(module(*jax.tree.map(gc.tensor, arguments)), expected)


@pytest.mark.parametrize("solver", ["Tsit5", "Kvaerno5"])
def test_solvers_of_diffrax_give_what_they_give_in_jax(solver, monkeypatch):
    monkeypatch.setenv("EQX_ON_ERROR", "nan")
    diffrax = pytest.importorskip("diffrax", reason="compares with Diffrax")

    def solve(y, stiffness):
        term = diffrax.ODETerm(lambda t, y, m: jnp.array([y[1], m * (1 - y[0] ** 2) * y[1] - y[0]]))
        steps = diffrax.PIDController(rtol=1e-8, atol=1e-8)
        times = diffrax.SaveAt(ts=jnp.linspace(0, 2, 5))
        solver_ = getattr(diffrax, solver)()
        return diffrax.diffeqsolve(
            term, solver_, 0.0, 2.0, 0.01, y, stiffness, saveat=times, stepsize_controller=steps, throw=False
        ).ys

    y, stiffness = np.array([2.0, 0.0]), np.array(1.5)
    with gc.no_grad():
        ours = gc.compile(gc.from_jax(solve, y, stiffness))(y, stiffness)
    np.testing.assert_allclose(ours.numpy(), jax.jit(solve)(y, stiffness), rtol=1e-10, atol=1e-10)


def test_texts_are_kept_of_all_functions():
    assert sorted(CASES) == NAMES
    function, arguments = CASES["collatz"]
    assert len(tool.text_of(function, arguments)[0].splitlines()) == len(text_of("collatz").splitlines())


def test_arguments_and_results_are_nested_as_in_jax():
    class Pair(NamedTuple):
        first: object
        second: object

    module = gc.from_jax(
        lambda p: {"sum": p["a"] + p["b"][0], "pair": Pair(p["a"], None)}, {"b": [jnp.ones(2)], "a": jnp.ones(2)}
    )
    result = module({"a": np.float64([1, 2]), "b": [np.float64([3, 4])]})
    assert result["sum"].tolist() == [4, 6] and result["pair"].second is None
    with pytest.raises(gc.errors.ArgumentError, match=r"expected a dictionary of \['a', 'b'\]"):
        module({"a": np.zeros(2)})


def test_functions_that_jax_does_not_export_are_refused():
    def printing(x):
        jax.debug.print("{}", x)
        return x

    with pytest.raises(gc.errors.UnsupportedError, match="does not export this function"):
        gc.from_jax(printing, jnp.ones(2))


def test_objects_whose_nesting_only_jax_knows_are_refused():
    kind = jax.tree_util.Partial
    with pytest.raises(gc.errors.UnsupportedError, match="holds an object of Partial"):
        gc.from_jax(lambda f: f.args[0], kind(jnp.sin, jnp.ones(2)))


def test_operations_without_a_rule_are_refused_by_name():
    with pytest.raises(gc.errors.UnsupportedError, match=r"custom_call @lapack_dgeev_ffi \(line \d+\)"):
        gc.from_jax(jnp.linalg.eigvals, np.eye(3))
