"""A sample of PyTorch's and numpy's tables: operators, layers, optimizers and functions give what the tables say.

``python -m tools.conformance --all`` runs them whole.
"""

from __future__ import annotations

import random
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from graphc.eager import dispatcher

torch: Any = pytest.importorskip("torch")
pytest.importorskip("expecttest")
tally: Any = pytest.importorskip("tools.conformance.tally")
operators: Any = pytest.importorskip("tools.conformance.operators")
layers: Any = pytest.importorskip("tools.conformance.layers")
optimizers: Any = pytest.importorskip("tools.conformance.optimizers")
functions: Any = pytest.importorskip("tools.conformance.functions")
singular: Any = pytest.importorskip("tools.conformance.singular")
names: Any = pytest.importorskip("tools.conformance.names")

SEED = 1
SAMPLES = {"forward": (40, 4), "gradient": (25, 3), "compiled": (10, 2), "compiled gradient": (6, 1)}
SAMPLES |= {"errors": (20, 4), "integers": (12, 4)}
"""How many operators, and how many samples of each, by column."""
STANDING = operators.standing() if operators else {}
MAPPED = [n for n, s in STANDING.items() if s == "mapped"]


@pytest.fixture(autouse=True)
def programs():
    """Eager mode as users have it."""
    warnings.simplefilter("ignore")
    yield


def failures(suite: Any, subject: str, column: str, most: int | None) -> list[str]:
    return tally.judge(suite, subject, column, most, SEED).failed


@pytest.mark.parametrize("column", SAMPLES)
def test_a_sample_of_operators(column: str):
    count, most = SAMPLES[column]
    chosen = random.Random(f"{SEED} {column}").sample(MAPPED, count)
    known = operators.DIFFERENT.get(column, {})
    found = {n: failures(operators, n, column, most) for n in chosen if n not in known}
    assert not {n: texts for n, texts in found.items() if texts}


@pytest.mark.parametrize("column", layers.COLUMNS if layers else ())
def test_a_sample_of_layers(column: str):
    kinds = [n for n, s in layers.standing().items() if s == "mapped"]
    chosen = random.Random(f"{SEED} {column}").sample(kinds, 4 if "compiled" in column else 30)
    found = {n: failures(layers, n, column, 2) for n in chosen}
    assert not {n: texts for n, texts in found.items() if texts}


def test_every_optimizer_with_its_first_options():
    kinds = [n for n, s in optimizers.standing().items() if s == "mapped"]
    found = {n: failures(optimizers, n, "eager", 3) for n in kinds}
    assert not {n: texts for n, texts in found.items() if texts}


@pytest.mark.parametrize("name", ["exp", "arcsinh", "log1p", "tanh"])
def test_functions_are_within_the_bounds_of_numpy(name: str):
    assert len(failures(functions, name, "eager", None)) == 0


@pytest.mark.parametrize("column", singular.COLUMNS if singular else ())
def test_a_sample_of_singular_points(column: str):
    subjects = [n for n, s in singular.standing().items() if s == "mapped"]
    chosen = random.Random(f"{SEED} {column}").sample(subjects, 3 if column == "compiled" else 20)
    found = {n: failures(singular, n, column, 300) for n in chosen}
    assert not {n: texts for n, texts in found.items() if texts}


def test_operators_are_mapped_or_left_out_with_a_reason():
    missing = {n for n, s in STANDING.items() if s == "missing"}
    assert not missing & set(names.EXCLUDED)
    assert len(missing) < 0.1 * len(STANDING)


@pytest.mark.parametrize("column", ["forward", "compiled", "integers"])
def test_a_wrong_function_is_found(column: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(operators, "find", lambda *_: lambda x: x + 1)
    assert failures(operators, "exp", column, 3)


def test_a_wrong_gradient_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(operators, "find", lambda *_: lambda x: x.exp().detach() + 0 * x)
    assert failures(operators, "exp", "gradient", 3)


@pytest.mark.parametrize("name", ["cholesky_inverse", "linalg_pinv_hermitian", "nn_functional_ctc_loss"])
def test_gradients_are_compared_by_what_operands_were_made_of(name: str):
    assert not failures(operators, name, "gradient", 2)


def test_tensors_that_share_memory_are_found():
    x, one = torch.zeros(4), torch.zeros(1)
    assert operators._share_memory([x[:2], x[2:]]) and operators._share_memory([one.expand(3)])
    assert not operators._share_memory([x, one, torch.zeros(0), torch.zeros(0)])


def test_a_call_that_raises_nothing_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(operators, "find", lambda *_: lambda *_, **__: None)
    assert failures(operators, "renorm", "errors", None)


def test_what_has_no_call_is_left_out_with_a_reason():
    samples: Any = pytest.importorskip("tools.conformance.samples")
    x = torch.zeros(2)
    for wrong, reason in (({"generator": x}, "generators"), ({"memory_format": torch.channels_last}, "memory formats")):
        with pytest.raises(samples.NotMappedError, match=reason):
            samples.call_of(SimpleNamespace(input=x, args=(), kwargs=wrong))
    assert dispatcher.EAGER
