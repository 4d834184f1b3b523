"""Parts of models with texts as functions of arrays: the same results as the operators, and the same errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from graphc.interop.onnx.host_parts import TextParts
from graphc.interop.onnx.text_split import split_texts
from graphc.interop.onnx.text_steps import ArrayPart
from tests.interop.onnx.alike import module_of
from tests.interop.onnx.text_models import CLASSIFIER, WORDS

LETTERS = """(string[N] letters) => (string[N] sounds)
    <string[3] table = {"ay", "bee", "?"}> {
    i = ai.onnx.ml.LabelEncoder<keys_strings=["a", "b"], values_int64s=[0, 1], default_int64=2>(letters)
    j = Abs(i)
    sounds = Gather(table, j)
}"""
"""Texts that become numbers, and numbers that become texts."""
TEXTS = [["a"], ["b", "a", "x"], ["x", "b"], [""], []]


def _refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("the call did not take the short way")


def _expected(texts: list[str]) -> list[str]:
    return [{"a": "ay", "b": "bee"}.get(text, "?") for text in texts]


def test_calls_of_forms_that_were_checked_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of(LETTERS)
    compiled = gc.compile(module, dims=module.dims)
    for texts in TEXTS[:3]:
        assert compiled(np.array(texts, object)).tolist() == _expected(texts)
    monkeypatch.setattr(TextParts, "_run_checked", _refuse)
    for texts in TEXTS[:3]:
        result = compiled(np.array(texts[::-1], object))
        assert (result.tolist(), result.dtype) == (_expected(texts[::-1]), object)
    assert compiled(np.array([b"a"], object)).tolist() == ["ay"]
    for other in (np.array(["a"] * 4, object), np.array([["a"]], object), np.array(["a"])):
        with pytest.raises(AssertionError, match="short way"):
            compiled(other)
    with pytest.raises(AssertionError, match="short way"):
        compiled(letters=np.array(["a"], object))


PIPELINE = """(string[N] words) => (float[N, 3] y) <int64[2] s = {1, -1}> {
    flat = Reshape(words, s)
    lower = StringNormalizer<case_change_action="LOWER", stopwords=["the"]>(flat)
    line = Flatten<axis=0>(lower)
    tokens = com.microsoft.Tokenizer<mark=0, pad_value="#", separators=[" "], mincharnum=1>(line)
    back = Squeeze(tokens)
    counts = TfIdfVectorizer<max_gram_length=1, min_gram_length=1, max_skip_count=0, mode="TF", ngram_counts=[0],
        ngram_indexes=[0, 1, 2], pool_strings=["a", "b", "c"]>(back)
    y = Abs(counts)
}"""
ENCODERS = """(string[N] words) => (float[N, 2] y) {
    hot = ai.onnx.ml.OneHotEncoder<cats_strings=["a", "b"]>(words)
    y = Abs(hot)
}"""


@pytest.mark.parametrize("text", [PIPELINE, ENCODERS])
def test_operators_with_tables_take_the_short_way(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables and patterns were made in every call."""
    module = module_of(text)
    compiled = gc.compile(module, dims=module.dims)
    words = np.array(["a b", "c", "A a"], object)
    expected = module(words).numpy()
    np.testing.assert_array_equal(compiled(words).numpy(), expected)
    monkeypatch.setattr(TextParts, "_run_checked", _refuse)
    np.testing.assert_array_equal(compiled(words).numpy(), expected)


def test_files_take_the_short_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of(LETTERS)
    gc.export(module, np.array(TEXTS[1], object), path=tmp_path / "a.gcm", dims=module.dims)
    loaded = gc.load(tmp_path / "a.gcm")
    for texts in TEXTS[:3]:
        assert loaded(np.array(texts, object)).tolist() == _expected(texts)
    monkeypatch.setattr(TextParts, "_run_checked", _refuse)
    for texts in TEXTS[:3]:
        assert loaded(np.array(texts, object)).tolist() == _expected(texts)


def test_wrong_arguments_are_errors_in_each_call() -> None:
    module = module_of(LETTERS)
    compiled = gc.compile(module, dims=module.dims)
    for _ in range(2):
        with pytest.raises(gc.errors.ShapeError):
            compiled(np.array([["a"]], object))


def test_results_for_the_program_are_tensors() -> None:
    module = module_of(WORDS.replace('t = StringNormalizer<case_change_action="LOWER">(x)', "t = Identity(x)"))
    compiled = gc.compile(module, dims=module.dims)
    for _ in range(2):
        result = compiled(np.array(["b", "a", "c"], object))
        assert isinstance(result, gc.Tensor)
        np.testing.assert_allclose(result.numpy(), np.exp(np.float32([2.5, 1.5, 0])), rtol=1e-6)


def test_operators_that_need_more_than_arrays_have_no_short_way() -> None:
    split = split_texts(module_of(CLASSIFIER).graph)
    assert split is not None
    assert ArrayPart.of(split.after) is None
    split = split_texts(module_of(LETTERS).graph)
    assert split is not None and ArrayPart.of(split.before) is not None


def test_an_index_out_of_range_is_the_error_of_the_operator() -> None:
    module = module_of(LETTERS.replace("default_int64=2", "default_int64=3"))
    compiled = gc.compile(module, dims=module.dims)
    assert compiled(np.array(["a"], object)).tolist() == ["ay"]
    for _ in range(2):
        with pytest.raises(gc.errors.UnsupportedError, match="the operator does not accept these inputs"):
            compiled(np.array(["x"], object))
