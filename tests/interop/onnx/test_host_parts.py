"""Models with texts: called, compiled, exported and loaded."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from tests.interop.onnx.alike import module_of
from tests.interop.onnx.text_models import CLASSIFIER, WORDS, classifier

COLORS = np.array([["red"], ["blue"], ["pink"], ["green"]], object)
X = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)


def _check(result: Any) -> None:
    """Compare with NumPy."""
    hot = (np.array(["red", "green", "blue"], object) == COLORS).astype(np.float32)
    weight = np.array([[-1, 0.5, 0, -2, 1], [1, -0.5, 0, 2, -1]], np.float32)
    scores = np.exp(np.concatenate([hot, X], 1) @ weight.T + np.array([0.25, -0.25], np.float32))
    scores /= scores.sum(1, keepdims=True)
    labels, maps = result
    assert labels.tolist() == [["no", "yes"][i] for i in scores.argmax(1)]
    assert [list(row) for row in maps] == [["no", "yes"]] * 4
    np.testing.assert_allclose([list(row.values()) for row in maps], scores, rtol=1e-5)


def test_a_model_with_texts_is_compiled() -> None:
    module = classifier()
    _check(module(COLORS, X))
    for compiled in (gc.compile(module), gc.compile(module, dims=module.dims)):
        _check(compiled(COLORS, X))
        _check(compiled(x=X, color=COLORS))
        assert len(compiled.programs) == 1


def test_one_program_serves_all_numbers_of_rows() -> None:
    module = classifier()
    compiled = gc.compile(module, dims=module.dims)
    for rows in (1, 3, 4):
        assert compiled(COLORS[:rows], X[:rows])[0].tolist() == module(COLORS[:rows], X[:rows])[0].tolist()
    assert len(compiled.programs) == 1


@pytest.mark.parametrize("native", [False, True])
def test_a_file_keeps_the_operators_on_texts(tmp_path: Path, native: bool) -> None:
    module, path = classifier(), tmp_path / "net.gcm"
    gc.export(module, COLORS, X, path=path, dims=module.dims, native=native)
    loaded = gc.load(path, trust=native)
    _check(loaded(COLORS, X))
    _check(loaded(color=COLORS, x=gc.from_numpy(X)))
    assert loaded(COLORS[:1], X[:1])[0].shape == (1,)


def test_categories_that_must_be_known_are_checked_in_calls_only(tmp_path: Path) -> None:
    module, path = module_of(CLASSIFIER.replace("zeros=1", "zeros=0")), tmp_path / "net.gcm"
    gc.export(module, *module.examples(), path=path, dims=module.dims)
    loaded, compiled = gc.load(path), gc.compile(module, dims=module.dims)
    known = np.array([["red"], ["blue"], ["red"], ["green"]], object)
    for call in (loaded, compiled):
        assert call(known, X)[0].tolist() == classifier()(known, X)[0].tolist()
        with pytest.raises(gc.errors.AttributeValueError, match="no category"):
            call(COLORS, X)


def test_an_entry_among_several_may_have_texts(tmp_path: Path) -> None:
    module, path = classifier(), tmp_path / "net.gcm"
    entries = {"double": gc.Entry(lambda x: x * 2, gc.zeros(3)), "classify": gc.Entry(module, COLORS, X)}
    gc.export(entries, path=path)
    loaded = gc.load(path)
    _check(loaded.entry("classify")(COLORS, X))
    assert loaded(np.ones(3, np.float32)).tolist() == [2, 2, 2]


def test_numbers_are_arrays_for_arrays_and_tensors_for_tensors(tmp_path: Path) -> None:
    module = module_of(
        "(string[N] c, float[N] x) => (float y) { i = ai.onnx.ml.LabelEncoder<"
        'keys_strings=["a"], values_floats=[2.0], default_float=0.0>(c) y = Mul(i, x) }'
    )
    texts, x = np.array(["a", "b"], object), np.array([3, 4], np.float32)
    gc.export(module, texts, x, path=tmp_path / "net.gcm")
    loaded = gc.load(tmp_path / "net.gcm")
    assert isinstance(loaded(texts, x), np.ndarray)
    assert isinstance(loaded(texts, gc.from_numpy(x)), gc.Tensor)
    assert loaded(texts, x).tolist() == [6, 0]
    assert gc.compile(module)(texts, x).tolist() == [6, 0]


def test_gradients_flow_through_the_program_around_texts() -> None:
    module = module_of(
        "(string[N] c, float[N] x) => (float y) { i = ai.onnx.ml.LabelEncoder<"
        'keys_strings=["a"], values_floats=[2.0], default_float=0.0>(c) y = Mul(i, x) }'
    )
    x = gc.ones(2, requires_grad=True)
    gc.compile(module)(np.array(["a", "b"], object), x).sum().backward()
    assert x.grad.tolist() == [2, 0]


def test_a_model_of_texts_alone_has_nothing_to_compile() -> None:
    module = module_of('(string[N] x) => (string y) { y = StringNormalizer<case_change_action="UPPER">(x) }')
    assert module(np.array(["a"], object)).tolist() == ["A"]
    with pytest.raises(gc.errors.ArgumentError, match="texts only"):
        gc.compile(module)


def test_pickles_and_copies_split_again() -> None:
    module = classifier()
    gc.compile(module)(COLORS, X)
    _check(gc.compile(pickle.loads(pickle.dumps(module)))(COLORS, X))


def test_what_cannot_hold_texts_names_them(tmp_path: Path) -> None:
    module = classifier()
    with pytest.raises(gc.errors.ArgumentError, match=r"C library cannot hold texts, and color, label"):
        gc.build_library(module, COLORS, X, path=tmp_path / "net.so")
    with pytest.raises(gc.errors.ArgumentError, match=r"ONNX file that graphc writes cannot hold texts, and color"):
        gc.export(module, COLORS, X, path=tmp_path / "net.onnx")
    with pytest.raises(gc.errors.ArgumentError, match="no derivative"):
        gc.export(module, COLORS, X, path=tmp_path / "net.gcm", derivative=True)


def test_sizes_of_looked_up_values_follow_the_texts() -> None:
    module = module_of(WORDS)
    parts = module.host_parts
    assert parts is not None
    assert {name: tuple(map(str, spec)) for name, spec in parts.program.dims.items()} == {"i": ("N",)}
