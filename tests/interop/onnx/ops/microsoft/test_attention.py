"""Attention operators of com.microsoft, against onnxruntime and compositions, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import graphc as gc  # noqa: E402
from graphc.base.errors import UnsupportedError  # noqa: E402
from tests.interop.onnx.one_node import MICROSOFT, check, floats, model_of, needs_runtime  # noqa: E402

BATCH, TIME, HEADS, SIZE, SHARED = 2, 5, 4, 16, 2
WIDTH = HEADS * SIZE
X = floats(BATCH, TIME, WIDTH)
WEIGHTS, BIAS = floats(WIDTH, 3 * WIDTH, seed=3) * 0.2, floats(3 * WIDTH, seed=4)
MASK = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)
PLAIN: dict[str, Any] = {"domain": MICROSOFT, "tolerance": 2e-4}
RUNTIME: dict[str, Any] = {**PLAIN, "runtime": True}
ANGLES = np.outer(np.arange(16), 1 / 10 ** np.arange(SIZE // 2)).astype(np.float32)
TABLES = (np.cos(ANGLES), np.sin(ANGLES))


def _apart(x: np.ndarray) -> np.ndarray:
    return x.reshape(x.shape[0], x.shape[1], -1, SIZE).transpose(0, 2, 1, 3)


def _attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, added: Any = 0.0) -> np.ndarray:
    """Heads together of softmax(q k / root(size) + added) v."""
    scores = q @ k.swapaxes(2, 3) / np.sqrt(SIZE) + added
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    result = raised / raised.sum(-1, keepdims=True) @ v
    return result.transpose(0, 2, 1, 3).reshape(result.shape[0], result.shape[2], -1)


def test_attention_is_one_of_plain_products():
    q, k, v = (_apart(part) for part in np.split(X @ WEIGHTS + BIAS, 3, -1))
    options = {"num_heads": HEADS, "constants": (1, 2), "open_sizes": {0: ("b", "t", WIDTH)}}
    check("Attention", X, WEIGHTS, BIAS, expected=[_attended(q, k, v)], **options, **PLAIN)


@needs_runtime
@pytest.mark.parametrize(
    "mask",
    [
        np.array([5, 3], np.int32),
        np.array([5, 3, 0, 1], np.int32),
        MASK,
        np.tril(np.ones((BATCH, TIME, TIME))).astype(np.int32),
    ],
    ids=["ends", "ends and starts", "keys", "pairs"],
)
def test_a_mask_comes_in_several_forms(mask):
    check("Attention", X, WEIGHTS, BIAS, mask, num_heads=HEADS, constants=(1, 2), **RUNTIME)


@needs_runtime
def test_a_past_of_keys_and_values_grows():
    past = floats(2, BATCH, HEADS, 3, SIZE, seed=5)
    sizes = {0: ("b", "t", WIDTH), 4: (2, "b", HEADS, "p", SIZE)}
    options = {"num_heads": HEADS, "constants": (1, 2), "outputs": 2, "unidirectional": 1, "open_sizes": sizes}
    check("Attention", X, WEIGHTS, BIAS, None, past, **options, **RUNTIME)


@needs_runtime
def test_values_may_be_of_another_size():
    weights, bias = floats(WIDTH, 2 * WIDTH + 16, seed=3) * 0.2, floats(2 * WIDTH + 16)
    options = {"num_heads": HEADS, "qkv_hidden_sizes": [WIDTH, WIDTH, 16], "scale": 0.3, "constants": (1, 2)}
    check("Attention", X, weights, bias, **options, **RUNTIME)


K, V = floats(BATCH, 7, WIDTH, seed=5), floats(BATCH, 7, WIDTH, seed=6)


def test_queries_keys_and_values_may_be_three():
    sizes = {0: ("b", "t", WIDTH), 1: ("b", "k", WIDTH), 2: ("b", "k", WIDTH)}
    expected = [_attended(_apart(X), _apart(K), _apart(V))]
    check("MultiHeadAttention", X, K, V, num_heads=HEADS, open_sizes=sizes, expected=expected, **PLAIN)


def test_queries_keys_and_values_may_be_packed():
    packed = floats(BATCH, TIME, HEADS, 3, SIZE, seed=8)
    q, k, v = packed.transpose(3, 0, 2, 1, 4)
    check("MultiHeadAttention", packed, num_heads=HEADS, expected=[_attended(q, k, v)], **PLAIN)
    options = {"num_heads": HEADS, "expected": [_attended(_apart(X), k, v)], **PLAIN}
    check("MultiHeadAttention", X, np.ascontiguousarray(packed[:, :, :, 1:]), **options)


@needs_runtime
def test_keys_may_be_padding_and_scores_have_a_bias():
    mask = np.array([[1] * 7, [1] * 4 + [0] * 3], np.int32)
    check("MultiHeadAttention", X, K, V, BIAS, mask, floats(1, HEADS, TIME, 7, seed=7), num_heads=HEADS, **RUNTIME)


@needs_runtime
def test_keys_and_values_may_come_from_a_cache():
    caches = [floats(BATCH, HEADS, 7, SIZE, seed=i) for i in (8, 9)]
    check("MultiHeadAttention", X, *caches, BIAS, num_heads=HEADS, **RUNTIME)


@needs_runtime
def test_a_causal_query_follows_its_past():
    past = [floats(BATCH, HEADS, 3, SIZE, seed=i) for i in (8, 9)]
    options = {"num_heads": HEADS, "unidirectional": 1, "outputs": 3, **RUNTIME}
    check("MultiHeadAttention", X, K[:, :5].copy(), V[:, :5].copy(), BIAS, None, None, *past, **options)


@needs_runtime
@pytest.mark.parametrize("interleaved", [0, 1])
def test_positions_turn_pairs(interleaved):
    options = {"interleaved": interleaved, "constants": (2, 3), **RUNTIME}
    first, each = np.array([2], np.int64), np.array([[0, 1, 2, 3, 4], [5, 4, 3, 2, 1]], np.int64)
    check("RotaryEmbedding", X, first, *TABLES, open_sizes={0: ("b", "t", WIDTH)}, **options)
    check("RotaryEmbedding", floats(BATCH, HEADS, TIME, SIZE), each, *TABLES, **options)


@needs_runtime
def test_a_part_of_each_head_may_be_turned():
    tables = [t[:, :4].copy() for t in TABLES]
    options = {"num_heads": HEADS, "rotary_embedding_dim": 8, "constants": (2, 3), **RUNTIME}
    check("RotaryEmbedding", X, np.array([2], np.int64), *tables, **options)


def _grouped(*arrays: Any, **options: Any) -> None:
    given = {"num_heads": HEADS, "kv_num_heads": SHARED, "outputs": 3, "constants": (5, 6), **options}
    check("GroupQueryAttention", *arrays, **given)


def _lens(*counts: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each item's number of steps minus one, and the largest number of steps."""
    return np.array(counts, np.int32) - 1, np.array(max(counts), np.int32)


def _new(steps: int, batch: int = BATCH) -> tuple[np.ndarray, ...]:
    return tuple(floats(batch, steps, n * SIZE, seed=i) for i, n in enumerate((HEADS, SHARED, SHARED)))


PAST = [floats(BATCH, SHARED, 6, SIZE, seed=i) for i in (8, 9)]
PACKED = floats(BATCH, TIME, (HEADS + 2 * SHARED) * SIZE)


def test_a_first_call_is_causal_attention_of_shared_heads():
    q, k, v = (_apart(a) for a in _new(TIME))
    hidden = np.triu(np.full((TIME, TIME), -np.inf), 1)
    expected = [_attended(q, k.repeat(2, 1), v.repeat(2, 1), hidden), k, v]
    _grouped(*_new(TIME), None, None, *_lens(5, 5), expected=expected, **PLAIN)


@needs_runtime
@pytest.mark.parametrize(
    "options", [{}, {"local_window_size": 2}, {"softcap": 3.0}, {"smooth_softmax": 1}, {"scale": 0.4}], ids=str
)
def test_a_first_call_with_options(options):
    _grouped(*_new(TIME), None, None, *_lens(5, 5), **options, **RUNTIME)


@needs_runtime
@pytest.mark.parametrize("interleaved", [0, 1])
def test_queries_and_keys_are_turned(interleaved):
    options = {"do_rotary": 1, "rotary_interleaved": interleaved, **RUNTIME}
    _grouped(*_new(TIME), None, None, *_lens(5, 5), *TABLES, **options)
    _grouped(PACKED, None, None, None, None, *_lens(5, 5), *TABLES, **options)


@needs_runtime
def test_a_step_is_written_behind_the_past():
    _grouped(*_new(1), *PAST, *_lens(7, 7), *TABLES, do_rotary=1, **RUNTIME)


def test_a_cache_with_room_stays_as_long_as_it_is():
    q, k, v = (_apart(a) for a in _new(1))
    caches = [np.concatenate([p[:, :, :4], new, p[:, :, 5:]], 2) for p, new in zip(PAST, (k, v), strict=True)]
    seen = [c[:, :, :5].repeat(2, 1) for c in caches]
    _grouped(*_new(1), *PAST, *_lens(5, 5), expected=[_attended(q, *seen), *caches], **PLAIN)


def test_items_have_as_many_steps_as_their_own_length_says():
    q, k, v = (_apart(a) for a in _new(1))
    caches = [np.concatenate([p, new], 2) for p, new in zip(PAST, (k, v), strict=True)]
    for cache, new in zip(caches, (k, v), strict=True):
        cache[1, :, 3], cache[1, :, 6] = new[1, :, 0], 0
    hidden = np.where(np.arange(7) < np.array([7, 4])[:, None], 0, -np.inf)[:, None, None]
    expected = [_attended(q, *(c.repeat(2, 1) for c in caches), hidden), *caches]
    _grouped(*_new(1), *PAST, *_lens(7, 4), expected=expected, **PLAIN)


@needs_runtime
def test_several_steps_follow_a_past():
    past = [p[:1].copy() for p in PAST]
    _grouped(*_new(3, 1), *past, *_lens(9), *TABLES, do_rotary=1, **RUNTIME)


@needs_runtime
@pytest.mark.parametrize("options", [{"local_window_size": 3}, {"smooth_softmax": 1}], ids=str)
def test_a_step_with_options(options):
    _grouped(*_new(1), *PAST, *_lens(7, 7), **options, **RUNTIME)


@needs_runtime
def test_a_step_has_a_bias_or_a_sink():
    _grouped(*_new(1), *PAST, *_lens(7, 7), None, None, None, floats(BATCH, HEADS, 1, 7), **RUNTIME)
    _grouped(*_new(1), *PAST, *_lens(7, 7), None, None, None, None, floats(HEADS, seed=3), **RUNTIME)


def test_a_cache_of_unknown_need_grows_by_the_steps_of_the_query():
    arrays = (*_new(1), *PAST, *_lens(7, 7))
    options = {"num_heads": HEADS, "kv_num_heads": SHARED, "outputs": 3, "domain": MICROSOFT}
    sizes = {3: ("b", SHARED, "p", SIZE), 4: ("b", SHARED, "p", SIZE)}
    module = gc.from_onnx(model_of("GroupQueryAttention", arrays, open_sizes=sizes, **options))
    eager, compiled = module(*arrays), gc.compile(module, dims=module.dims)(*arrays)
    for result, expected in zip(compiled, eager, strict=True):
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
    assert compiled[1].shape == (BATCH, SHARED, 7, SIZE)


@pytest.mark.parametrize(
    ("op", "arrays", "options"),
    [
        ("Attention", (X, WEIGHTS), {"num_heads": HEADS, "do_rotary": 1}),
        (
            "GroupQueryAttention",
            (*_new(TIME), None, None, *_lens(5, 5)),
            {"num_heads": HEADS, "kv_num_heads": SHARED, "k_quant_type": "PER_TENSOR"},
        ),
    ],
)
def test_what_is_not_done_is_an_error(op, arrays, options):
    module = gc.from_onnx(model_of(op, arrays, domain=MICROSOFT, **options))
    with pytest.raises(UnsupportedError):
        module(*[a for a in arrays if a is not None])


BUFFERS = floats(BATCH, HEADS, 8, SIZE, seed=7), floats(BATCH, HEADS, 8, SIZE, seed=8)
WRITTEN = np.array([2], np.int32)


def _continued(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    """Return the results of attention with buffers of two earlier steps."""
    steps, buffers = 2 + k.shape[1], [b.copy() for b in BUFFERS]
    for buffer, rows in zip(buffers, (k, v), strict=True):
        buffer[:, :, 2:steps] = _apart(rows)
    return [_attended(_apart(q), *[b[:, :, :steps] for b in buffers]), *buffers]


def test_keys_and_values_are_written_to_buffers():
    k, v = floats(BATCH, TIME, WIDTH, seed=3), floats(BATCH, TIME, WIDTH, seed=4)
    arrays = (X, k, v, None, None, None, *BUFFERS, WRITTEN)
    sizes = {0: ("b", TIME, WIDTH), 1: ("b", TIME, WIDTH), 2: ("b", TIME, WIDTH)}
    sizes |= dict.fromkeys((6, 7), ("b", HEADS, 8, SIZE))
    options = {"num_heads": HEADS, "outputs": 3, "open_sizes": sizes}
    check("MultiHeadAttention", *arrays, expected=_continued(X, k, v), **options, **PLAIN)


@needs_runtime
@pytest.mark.parametrize("causal", [0, 1])
def test_buffers_are_those_of_onnxruntime(causal):
    k, v = floats(BATCH, TIME, WIDTH, seed=3), floats(BATCH, TIME, WIDTH, seed=4)
    options = {"num_heads": HEADS, "outputs": 3, "unidirectional": causal}
    check("MultiHeadAttention", X, k, v, BIAS, None, None, *BUFFERS, WRITTEN, **options, **RUNTIME)


ONE = [floats(BATCH, 1, WIDTH, seed=seed) for seed in (1, 2, 3)]


def test_a_decoder_attends_in_single_steps():
    options = {"num_heads": HEADS, "outputs": 3, "past_present_share_buffer": 1}
    arrays = (*ONE, None, None, *BUFFERS, WRITTEN)
    check("DecoderMaskedMultiHeadAttention", *arrays, expected=_continued(*ONE), **options, **PLAIN)


@needs_runtime
def test_steps_of_a_decoder_are_those_of_onnxruntime():
    options = {"num_heads": HEADS, "outputs": 3, "past_present_share_buffer": 1}
    mask = np.array([[1, 1, 1], [0, 1, 1]], np.int32)
    arrays = (*ONE, mask, None, *BUFFERS, WRITTEN, None, None, BIAS)
    check("DecoderMaskedMultiHeadAttention", *arrays, **options, **RUNTIME)
    check("DecoderMaskedMultiHeadAttention", ONE[0], *BUFFERS, num_heads=HEADS, **RUNTIME)
    beams = np.array([[[1, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]]], np.int32)
    arrays = (*ONE, None, None, *BUFFERS, WRITTEN, np.array([2], np.int32), beams)
    check("DecoderMaskedMultiHeadAttention", *arrays, **options, **RUNTIME)


@needs_runtime
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("interleaved", [0, 1])
def test_positions_in_time_height_and_width_rotate(layout, interleaved):
    positions = np.random.default_rng(1).integers(0, 16, (3, BATCH, TIME))
    options = {"mrope_section": [4, 2, 2], "mrope_layout": layout, "interleaved": interleaved, "num_heads": HEADS}
    sizes = {0: ("b", "t", WIDTH), 1: (3, "b", "t")}
    check("MRotaryEmbedding", X, positions, *TABLES, constants=(2, 3), open_sizes=sizes, **options, **RUNTIME)


def test_equal_positions_rotate_as_one_position_does():
    positions = np.tile(np.arange(TIME), (BATCH, 1))
    one = gc.from_onnx(model_of("RotaryEmbedding", (X, positions, *TABLES), num_heads=HEADS, domain=MICROSOFT))
    expected = one(X, positions, *TABLES).numpy()
    options = {"mrope_section": [3, 3, 2], "mrope_layout": 1, "num_heads": HEADS}
    check("MRotaryEmbedding", X, np.stack([positions] * 3), *TABLES, expected=[expected], **options, **PLAIN)
