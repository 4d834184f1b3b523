"""Comparisons of decision trees, all written as "at most"."""

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from graphc.interop.onnx.ops.classical.tree_records import MODES
from tests.interop.onnx.alike import proto_of

X = np.array([-np.inf, -2, -1, -0.0, 0, 1, np.nextafter(np.float32(1), 2), 2, 3, np.inf, np.nan], np.float32)
SET = (1.0, 3.0, -np.inf)
COMPARE = {
    "LEQ": np.less_equal,
    "LT": np.less,
    "GTE": np.greater_equal,
    "GT": np.greater,
    "EQ": np.equal,
    "NEQ": np.not_equal,
    "MEMBER": lambda x, _: np.isin(x, SET),
}


@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("threshold", [1.0, 0.0, -1.0])
@pytest.mark.parametrize("mode", MODES)
def test_comparisons_decide_as_their_names_say(mode: str, threshold: float, missing: int) -> None:
    members = ", ".join(str(v) for v in SET)
    sets = f"membership_values = float[{len(SET)}] {{{members}}}," if mode == "MEMBER" else ""
    text = f"""(float[N, 1] x) => (float y) {{ y = ai.onnx.ml.TreeEnsemble<aggregate_function=1, leaf_targetids=[0, 0],
        leaf_weights = float[2] {{1.0, 2.0}}, n_targets=1, {sets} nodes_falseleafs=[1], nodes_falsenodeids=[1],
        nodes_featureids=[0], nodes_missing_value_tracks_true=[{missing}],
        nodes_modes = uint8[1] {{{MODES.index(mode)}}}, nodes_splits = float[1] {{{threshold}}}, nodes_trueleafs=[1],
        nodes_truenodeids=[0], tree_roots=[0]>(x) }}"""
    model = gc.from_onnx(proto_of(text, ml=5))
    goes = COMPARE[mode](X, np.float32(threshold)) | (np.isnan(X) & bool(missing))
    for call in (model, gc.compile(model, dims=model.dims)):
        np.testing.assert_array_equal(call(gc.from_numpy(X[:, None])).numpy()[:, 0], np.where(goes, 1, 2))
