"""Operators of texts."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from tests.interop.onnx.alike import arrays_of, module_of, onnx, proto_of


def _texts(*found: Any) -> np.ndarray:
    return np.array(found, object)


def _run(text: str, *inputs: np.ndarray) -> list[Any]:
    return [a.tolist() for a in arrays_of(module_of(text)(*inputs))]


def test_texts_are_joined() -> None:
    text = "(string[N] x, string[1] y) => (string[N] z) { z = StringConcat(x, y) }"
    assert _run(text, _texts("a", "b"), _texts("é")) == [["aé", "bé"]]


def test_texts_are_split_at_a_delimiter_or_at_spaces() -> None:
    text = '(string[N] x) => (string y, int64 n) { y, n = StringSplit<delimiter=".">(x) }'
    assert _run(text, _texts("a.b.c", "d")) == [[["a", "b", "c"], ["d", "", ""]], [3, 1]]
    text = "(string[N] x) => (string y, int64 n) { y, n = StringSplit<maxsplit=1>(x) }"
    assert _run(text, _texts(" a  b c", "")) == [[["a", "b c"], ["", ""]], [2, 0]]


def test_texts_are_cleaned() -> None:
    node = 'StringNormalizer<case_change_action="UPPER", is_case_sensitive=0, stopwords=["monday"]>(x)'
    text = f"(string[N] x) => (string y) {{ y = {node} }}"
    assert _run(text, _texts("Monday", "tuesday")) == [["TUESDAY"]]
    assert _run(text, _texts("monday")) == [[""]]


def test_patterns_match_whole_texts() -> None:
    text = '(string[N] x) => (bool y) { y = RegexFullMatch<pattern="a+b">(x) }'
    assert _run(text, _texts("aab", "aabc")) == [[True, False]]


def test_a_wrong_pattern_is_an_error() -> None:
    module = module_of('(string[N] x) => (bool y) { y = RegexFullMatch<pattern="(">(x) }')
    with pytest.raises(gc.errors.AttributeValueError, match="pattern"):
        module(_texts("a"))


def _tokens(attributes: str, *found: str) -> Any:
    text = f"(string[N] x) => (string y) {{ y = com.microsoft.Tokenizer<{attributes}>(x) }}"
    proto = proto_of(text)
    proto.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    return gc.from_onnx(proto)(_texts(*found)).tolist()


def test_texts_become_tokens() -> None:
    plain = 'mark=0, pad_value="#"'
    assert _tokens(plain + ', mincharnum=2, tokenexp="[a-z]+"', "ab c, def", "xy") == [["ab", "def"], ["xy", "#"]]
    assert _tokens(plain + ', mincharnum=1, separators=[",", " +"]', "a,b  c", "d") == [
        ["a", "b", "c"],
        ["d", "#", "#"],
    ]
    assert _tokens(plain + ', mincharnum=1, separators=[""]', "äb") == [["ä", "b"]]
    marked = plain.replace("mark=0", "mark=1")
    assert _tokens(marked + ', mincharnum=1, tokenexp="."', "a") == [["\x02", "a", "\x03"]]


def test_sequences_of_numbers_are_counted() -> None:
    node = """TfIdfVectorizer<max_gram_length=2, max_skip_count=1, min_gram_length=1, mode="TF",
        ngram_counts=[0, 2], ngram_indexes=[0, 1, 2], pool_int64s=[2, 3, 5, 6]>(x)"""
    assert _run(f"(int64[N] x) => (float y) {{ y = {node} }}", np.array([2, 5, 6, 3, 6])) == [[1, 1, 1]]
    weighted = node.replace('"TF"', '"TFIDF", weights=[2.0, 3.0, 4.0]')
    assert _run(f"(int64[N] x) => (float y) {{ y = {weighted} }}", np.array([2, 2, 5, 6])) == [[4, 0, 4]]


def test_texts_are_moved_as_tensors_are() -> None:
    text = """(string[N, 2] x) => (string y) {
        i = Constant<value_ints=[1]>() g = Gather<axis=1>(x, i) c = Concat<axis=1>(g, x) t = Transpose(c)
        s = Constant<value_ints=[-1]>() y = Reshape(t, s)
    }"""
    assert _run(text, _texts(["a", "b"], ["c", "d"])) == [["b", "d", "a", "c", "b", "d"]]


def test_a_computed_index_chooses_a_text() -> None:
    module = module_of("""(float[N, 3] x) => (string y) {
        words = Constant<value_strings=["low", "middle", "high"]>() i = ArgMax<axis=1, keepdims=0>(x)
        y = Gather(words, i)
    }""")
    x = np.eye(3, dtype=np.float32)[[2, 0]]
    for call in (module, gc.compile(module, dims=module.dims)):
        assert call(x).tolist() == ["high", "low"]
