"""Operators that map, scale and choose features, and linear models."""

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from tests.interop.onnx.alike import arrays_of, check, module_of

X = np.array([[1, -2, 0], [0, 3, 4], [0, 0, 0]], np.float32)


@pytest.mark.parametrize(
    "node",
    [
        "Binarizer<threshold=0.5>",
        'Normalizer<norm="MAX">',
        'Normalizer<norm="L1">',
        'Normalizer<norm="L2">',
        "Scaler<offset=[1.0, 0.0, 0.0], scale=[2.0, 1.0, 3.0]>",
        "Imputer<imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=0.0>",
    ],
)
def test_an_operator_is_the_same_eagerly_and_compiled(node: str) -> None:
    x = abs(X) if "MAX" in node else X
    check(f"(float[N, 3] x) => (float y) {{ y = ai.onnx.ml.{node}(x) }}", x)


def test_features_are_picked_and_put_side_by_side() -> None:
    text = """(float[N, 3] x, int64[2] i) => (float y) {
        a = ai.onnx.ml.ArrayFeatureExtractor(x, i) y = ai.onnx.ml.FeatureVectorizer<inputdimensions=[2, 3]>(a, x)
    }"""
    check(text, X, np.array([2, 0]), expected=[np.concatenate([X[:, [2, 0]], X], 1)])


def test_categories_become_ones() -> None:
    text = "(int64[N] x) => (float y) { y = ai.onnx.ml.OneHotEncoder<cats_int64s=[5, 7]>(x) }"
    check(text, np.array([7, 5, 1]), expected=[[[0, 1], [1, 0], [0, 0]]])
    text = '(string[N] x) => (float y) { y = ai.onnx.ml.OneHotEncoder<cats_strings=["a", "b"]>(x) }'
    assert module_of(text)(np.array(["b", "c"], object)).tolist() == [[0, 1], [0, 0]]
    assert module_of(text)(np.array([b"b", "a"], object)).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(gc.errors.GraphcError, match="belongs to no category"):
        module_of(text.replace('"b"]', '"b"], zeros=0'))(np.array(["b", "c"], object))


def test_numbers_are_mapped_in_compiled_code() -> None:
    node = "LabelEncoder<keys_int64s=[3, 1], values_floats=[0.5, 1.5], default_float=-1.0>"
    text = f"(int64[N] x) => (float y) {{ y = ai.onnx.ml.{node}(x) }}"
    check(text, np.array([1, 3, 2]), expected=[[1.5, 0.5, -1]])


def test_integers_are_looked_up_in_a_table_or_among_sparse_keys() -> None:
    for keys in ([7, -2, 7, 3], [10**6, -2, 5, 3]):
        node = f"LabelEncoder<keys_int64s={keys}, values_int64s=[1, 2, 3, 4], default_int64=-5>"
        values = dict(zip(reversed(keys), [4, 3, 2, 1], strict=True))
        x = np.array([7, -2, 3, 5, 4, 10**6, 2**62, -(2**62)])
        expected = [values.get(v, -5) for v in x.tolist()]
        check(f"(int64[N] x) => (int64 y) {{ y = ai.onnx.ml.{node}(x) }}", x, expected=[expected])


def test_features_of_texts_are_picked() -> None:
    text = "(string[N, 2] x, int64[1] i) => (string y) { y = ai.onnx.ml.ArrayFeatureExtractor(x, i) }"
    assert module_of(text)(np.array([["a", "b"], ["c", "d"]], object), np.array([1])).tolist() == [["b"], ["d"]]


def test_nan_is_a_key_like_any_other() -> None:
    module = module_of(
        "(float[N] x, float[2] k) => (int64 y) {"
        " y = ai.onnx.ml.LabelEncoder<keys_floats=[1.0, 2.0], values_int64s=[4, 5]>(x) }"
    )
    assert module(np.array([2, np.nan], np.float32), np.zeros(2, np.float32)).tolist() == [5, -1]


def test_texts_are_mapped_to_numbers_and_back() -> None:
    node = 'CategoryMapper<cats_int64s=[1, 2], cats_strings=["a", "b"]>'
    text = f"(string[N] x) => (int64 y, string z) {{ y = ai.onnx.ml.{node}(x) z = ai.onnx.ml.{node}(y) }}"
    found = arrays_of(module_of(text)(np.array(["b", "c"], object)))
    assert [f.tolist() for f in found] == [[2, -1], ["b", "_Unused"]]


def test_a_linear_model_predicts_numbers() -> None:
    node = "LinearRegressor<coefficients=[1.0, 2.0, 3.0, 0.0, 1.0, 0.0], intercepts=[0.5, -0.5], targets=2>"
    expected = X @ np.array([[1, 2, 3], [0, 1, 0]], np.float32).T + np.array([0.5, -0.5], np.float32)
    check(f"(float[N, 3] x) => (float y) {{ y = ai.onnx.ml.{node}(x) }}", X, expected=[expected])


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_a_linear_model_chooses_classes(post: str) -> None:
    node = f"""LinearClassifier<coefficients=[1.0, 2.0, 3.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0],
        intercepts=[0.5, -0.5, 0.1], classlabels_ints=[10, 20, 30], post_transform="{post}">"""
    check(f"(float[N, 3] x) => (int64 y, float s) {{ y, s = ai.onnx.ml.{node}(x) }}", X)


def test_classes_may_be_texts() -> None:
    node = """LinearClassifier<coefficients=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0], intercepts=[0.0, 0.0],
        classlabels_strings=["left", "right"]>"""
    module = module_of(f"(float[N, 3] x) => (string y, float s) {{ y, s = ai.onnx.ml.{node}(x) }}")
    for call in (module, gc.compile(module)):
        assert call(X)[0].tolist() == ["left", "right", "left"]
