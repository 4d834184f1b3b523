"""CTC against PyTorch and against the sum over all paths; compiled as eager."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.errors import AttributeValueError, ShapeError
from graphc.nn import functional as F
from tests.nn.compare import agree, floats, tensor

LOGITS = floats(6, 3, 5)
TARGETS = np.array([[1, 2, 2], [3, 1, 4], [4, 4, 1]])


def loss(library: Any, *rest: Any, **options: Any) -> Any:
    functional = library.nn.functional

    def run(logits: Any, *targets: Any) -> Any:
        return functional.ctc_loss(functional.log_softmax(logits, -1), *targets, *rest, **options)

    return run


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("lengths", [([6, 5, 6], [3, 2, 0]), ([6, 6, 4], [3, 3, 1])])
def test_as_torch(torch, reduction: str, lengths: Any):
    for blank, targets in ((0, TARGETS), (4, TARGETS % 4)):
        made = [loss(t, *lengths, blank=blank, reduction=reduction) for t in (graphc, torch)]
        agree(*made, LOGITS, targets)


def test_other_forms_of_arguments_as_torch(torch):
    agree(loss(graphc), loss(torch), LOGITS, TARGETS, np.array([6, 5, 6]), np.array([3, 2, 1]))
    joined = np.array([1, 2, 2, 3, 1, 4])
    agree(loss(graphc, (6, 6, 6), (3, 2, 1)), loss(torch, (6, 6, 6), (3, 2, 1)), LOGITS, joined)
    agree(loss(graphc), loss(torch), LOGITS[:, 0], TARGETS[0], np.array(6), np.array(3))


def test_impossible_targets_as_torch(torch):
    lengths = ([2, 6, 3], [3, 3, 3])
    options = {"reduction": "none", "zero_infinity": True}
    agree(loss(graphc, *lengths, **options), loss(torch, *lengths, **options), LOGITS, TARGETS)
    found = loss(graphc, *lengths, reduction="none")(tensor(LOGITS), tensor(TARGETS))
    assert np.isinf(found.numpy()).tolist() == [True, False, True]


def test_the_sum_over_all_paths():
    logs = F.log_softmax(tensor(floats(4, 1, 3)), -1)
    for target in ([1], [1, 2], [2, 2], [1, 1, 2]):
        total = 0.0
        for path in itertools.product(range(3), repeat=4):
            labels = [k for k, _ in itertools.groupby(path)]
            if [k for k in labels if k] == target:
                total += np.exp(sum(logs[t, 0, k].item() for t, k in enumerate(path)))
        found = F.ctc_loss(logs, graphc.tensor([target]), [4], [len(target)], reduction="sum").item()
        assert found == pytest.approx(-np.log(total) if total else np.inf)


def test_compiled_as_eager():
    logits = graphc.nn.Parameter(tensor(LOGITS).float())
    targets, lengths = tensor(TARGETS), (graphc.tensor([6, 5, 6]), graphc.tensor([3, 2, 3]))
    fast = graphc.compile(loss(graphc))
    eager = loss(graphc)(logits, targets, *lengths)
    found = fast(logits, targets, *lengths)
    assert found.item() == pytest.approx(eager.item(), rel=1e-5)
    found.backward()
    compiled, logits.grad = logits.grad, None
    eager.backward()
    np.testing.assert_allclose(compiled.numpy(), logits.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_wrong_uses():
    logs, targets = tensor(LOGITS), tensor(TARGETS)
    for arguments, error, text in (
        (
            (logs, targets, [6, 6], [3, 3, 3]),
            ShapeError,
            "input_lengths must have one number for each of 3 sequences, got 2",
        ),
        ((logs, targets[:2], [6, 6, 6], [3, 3, 3]), ShapeError, r"targets \[2, 3\] do not fit a batch of 3 sequences"),
        ((logs, targets.reshape(-1), [6, 6, 6], [3, 3, 1]), ShapeError, r"targets \[9\] do not fit lengths"),
        ((logs, targets, [6, 6, 6], [3, 3, 3], 5), AttributeValueError, "blank 5 is not one of the 5 classes"),
        ((logs[0, 0], targets, [6], [3]), ShapeError, r"are not \[time, batch, classes\]"),
    ):
        with pytest.raises(error, match=text):
            F.ctc_loss(*arguments)
