"""Operators of lists of tensors and of values that may be absent."""

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from tests.interop.onnx.alike import check, module_of

X = np.arange(12, dtype=np.float32).reshape(6, 2)


def test_lists_are_built_and_taken_apart() -> None:
    text = """(float[6, 2] x) => (float y, int64 n) {
        e = SequenceEmpty() a = SequenceInsert(e, x) m = Neg(x) p = Constant<value_int=0>()
        b = SequenceInsert(a, m, p) c = SequenceConstruct(x, m, x) d = SequenceErase(c, p) n = SequenceLength(d)
        l = Constant<value_int=-1>() u = SequenceAt(b, p) v = SequenceAt(d, l) y = Sub(u, v)
    }"""
    check(text, X, expected=[-X - X, 2])


@pytest.mark.parametrize(
    ("split", "parts"),
    [("s = Constant<value_int=4>()", [4, 2]), ("s = Constant<value_ints=[1, 2, 3]>()", [1, 2, 3])],
)
def test_a_tensor_becomes_a_list_of_parts(split: str, parts: list[int]) -> None:
    module = module_of(f"(float[6, 2] x) => (seq(float[K, 2]) y) {{ {split} y = SplitToSequence(x, s) }}")
    result = module(X)
    assert [len(part) for part in result] == parts
    np.testing.assert_array_equal(np.concatenate([p.numpy() for p in result]), X)


def test_entries_may_lose_their_axis() -> None:
    text = """(float[6, 2] x) => (float y) {
        s = SplitToSequence<keepdims=0>(x) y = ConcatFromSequence<axis=1, new_axis=1>(s)
    }"""
    check(text, X, expected=[X.T])


def test_lists_come_in_and_go_out() -> None:
    module = module_of("(seq(float[K]) s, float[K] x) => (seq(float[K]) t) { t = SequenceInsert(s, x) }")
    result = module([np.zeros(2, np.float32), np.ones(3, np.float32)], np.ones(1, np.float32))
    assert [tuple(t.shape) for t in result] == [(2,), (3,), (1,)]


def test_a_position_outside_is_an_error() -> None:
    module = module_of(
        "(float[2] x) => (float y) { s = SequenceConstruct(x) p = Constant<value_int=1>() y = SequenceAt(s, p) }"
    )
    with pytest.raises(gc.errors.IndexRangeError, match="position 1 is out of range for a sequence of 1"):
        module(np.ones(2, np.float32))


def test_what_may_be_absent_is_asked_for() -> None:
    module = module_of("(optional(float[2]) x) => (bool y) { y = OptionalHasElement(x) }")
    assert [bool(module(v).item()) for v in (np.ones(2, np.float32), None)] == [True, False]


def test_what_is_absent_cannot_be_had() -> None:
    module = module_of("(optional(float[2]) x) => (float[2] y) { y = OptionalGetElement(x) }")
    assert module(np.ones(2, np.float32)).tolist() == [1, 1]
    with pytest.raises(gc.errors.ArgumentError, match="is absent"):
        module(None)
