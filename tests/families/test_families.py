"""Twelve families of models against PyTorch with the same weights: eager, compiled, and one compiled training step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphc
from tests.families import sequence_models, vision_models

TOLERANCE = 1e-4


class Family(NamedTuple):
    """A model, its operands, the target of its training, and the loss."""

    build: Callable[[Any], Any]
    inputs: tuple[np.ndarray, ...]
    target: np.ndarray
    loss: Callable[[Any], Callable[[Any, Any], Any]]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def whole(high: int, *shape: int, low: int = 0, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape)


def cross_entropy(t: Any) -> Any:
    return lambda output, target: t.nn.functional.cross_entropy(output, target)


def nll(t: Any) -> Any:
    return lambda output, target: t.nn.functional.nll_loss(output, target)


def squares(t: Any) -> Any:
    return lambda output, target: t.nn.functional.mse_loss(output, target)


def elbo(t: Any) -> Any:
    def loss(output: Any, target: Any) -> Any:
        image, mean, logvar = output
        divergence = -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(1).mean()
        return t.nn.functional.binary_cross_entropy(image, target, reduction="sum") / len(target) + divergence

    return loss


def masked_words(t: Any) -> Any:
    def loss(output: Any, target: Any) -> Any:
        words, pooled = output
        return t.nn.functional.cross_entropy(words, target, ignore_index=-100) + (pooled**2).mean()

    return loss


def detection(t: Any) -> Any:
    def loss(output: Any, target: Any) -> Any:
        boxes = t.nn.functional.smooth_l1_loss(output[..., :4], target[..., :4])
        return boxes + t.nn.functional.binary_cross_entropy(output[..., 4:], target[..., 4:])

    return loss


TOKENS = whole(13, 2, 6, low=1)
PADDED = TOKENS * (np.arange(6) < np.array([[6], [4]]))
BOXES = np.concatenate([normal(2, 32, 4) * 4, (normal(2, 32, 4, seed=1) > 0.5).astype(np.float32)], -1)

FAMILIES = {
    "mlp": Family(sequence_models.mlp, (normal(8, 6),), whole(3, 8), cross_entropy),
    "mnist_cnn": Family(vision_models.mnist_cnn, (normal(3, 1, 28, 28),), whole(10, 3), nll),
    "resnet18": Family(vision_models.resnet18, (normal(2, 3, 64, 64),), whole(10, 2), cross_entropy),
    "unet": Family(vision_models.unet, (normal(2, 3, 16, 16),), whole(2, 2, 16, 16), cross_entropy),
    "vae": Family(
        vision_models.vae,
        (np.abs(normal(3, 1, 12, 12)) % 1, normal(3, 3, seed=1)),
        np.abs(normal(3, 1, 12, 12)) % 1,
        elbo,
    ),
    "lstm_tagger": Family(sequence_models.lstm_tagger, (whole(11, 3, 5),), whole(4, 3, 5), cross_entropy),
    "gru": Family(sequence_models.gru_classifier, (normal(5, 3, 5),), whole(3, 3), cross_entropy),
    "bert": Family(
        sequence_models.bert_encoder,
        (PADDED, whole(2, 2, 6)),
        np.where(whole(3, 2, 6) > 0, TOKENS, -100),
        masked_words,
    ),
    "gpt": Family(sequence_models.gpt, (TOKENS,), whole(13, 2, 6, seed=1), cross_entropy),
    "vit": Family(vision_models.vit, (normal(2, 3, 12, 12),), whole(5, 2), cross_entropy),
    "yolo": Family(vision_models.yolo_head, (normal(2, 3, 16, 16),), BOXES, detection),
    "diffusion": Family(
        vision_models.diffusion_block, (normal(2, 8, 8, 8), whole(100, 2)), normal(2, 3, 8, 8), squares
    ),
}


def tensors(library: Any, arrays: Any) -> list[Any]:
    return [library.from_numpy(np.ascontiguousarray(a)) for a in arrays]


def pair(family: Family) -> tuple[Any, Any, Any]:
    """torch, and the model in graphc and in PyTorch with the same weights."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    theirs = family.build(torch)
    ours = family.build(graphc)
    state = {name: value.detach().numpy().copy() for name, value in theirs.state_dict().items()}
    assert str(ours.load_state_dict(state)) == "<All keys matched successfully>"
    return torch, ours, theirs


def flat(output: Any) -> list[np.ndarray]:
    result = output if isinstance(output, tuple) else (output,)
    return [t.detach().numpy() for t in result]


def assert_close(result: list[np.ndarray], expected: list[np.ndarray], what: str) -> None:
    assert len(result) == len(expected)
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, err_msg=what)


@pytest.mark.parametrize("name", FAMILIES)
def test_outputs(name):
    """Eager and compiled, in evaluation mode."""
    family = FAMILIES[name]
    torch, ours, theirs = pair(family)
    ours.eval()
    theirs.eval()
    with torch.no_grad():
        expected = flat(theirs(*tensors(torch, family.inputs)))
    with graphc.no_grad():
        assert_close(flat(ours(*tensors(graphc, family.inputs))), expected, "eager")
        compiled = graphc.compile(ours)
        assert_close(flat(compiled(*tensors(graphc, family.inputs))), expected, "compiled")


def train(library: Any, model: Any, family: Family) -> tuple[float, dict[str, np.ndarray]]:
    """One eager step; the loss before it, and the state after it."""
    optimizer = library.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    (target,) = tensors(library, [family.target])
    loss = family.loss(library)(model(*tensors(library, family.inputs)), target)
    loss.backward()
    optimizer.step()
    return float(loss.detach()), {k: v.detach().numpy().copy() for k, v in model.state_dict().items()}


@pytest.mark.sampled(50)
@pytest.mark.parametrize("name", FAMILIES)
def test_training_step(name):
    """One step in training mode: eager, and by a compiled step."""
    family = FAMILIES[name]
    torch, ours, theirs = pair(family)
    again = family.build(graphc)
    again.load_state_dict(ours.state_dict())
    expected, state = train(torch, theirs, family)
    result, eager_state = train(graphc, ours, family)
    assert result == pytest.approx(expected, rel=TOLERANCE)
    assert_close(list(eager_state.values()), list(state.values()), "eager")

    optimizer = graphc.optim.SGD(again.parameters(), lr=0.05, momentum=0.9)
    step = graphc.compile_step(again, family.loss(graphc), optimizer)
    (target,) = tensors(graphc, [family.target])
    result = step(tuple(tensors(graphc, family.inputs)), target).item()
    assert result == pytest.approx(expected, rel=TOLERANCE)
    for (key, value), expected_result in zip(again.state_dict().items(), state.values(), strict=True):
        np.testing.assert_allclose(value.detach().numpy(), expected_result, rtol=TOLERANCE, atol=TOLERANCE, err_msg=key)
