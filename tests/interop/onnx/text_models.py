"""Models with texts in ONNX's text form."""

from graphc.interop.onnx import OnnxModule
from tests.interop.onnx.alike import module_of

CLASSES = 'classlabels_strings=["no", "yes"]'
CLASSIFIER = f"""(string[N, 1] color, float[N, 2] x) => (string label, seq(map(string, float)) scores)
    <int64[2] s = {{-1, 3}}> {{
    hot = ai.onnx.ml.OneHotEncoder<cats_strings=["red", "green", "blue"], zeros=1>(color)
    row = Reshape(hot, s) both = Concat<axis=1>(row, x)
    label, p = ai.onnx.ml.LinearClassifier<coefficients=[-1.0, 0.5, 0.0, -2.0, 1.0, 1.0, -0.5, 0.0, 2.0, -1.0],
        intercepts=[0.25, -0.25], post_transform="SOFTMAX", {CLASSES}>(both)
    scores = ai.onnx.ml.ZipMap<{CLASSES}>(p)
}}"""
"""A text column beside numbers, labels that are texts, and a dictionary of scores for each row."""
WORDS = """(string[N] x) => (float y) {
    t = StringNormalizer<case_change_action="LOWER">(x)
    i = ai.onnx.ml.LabelEncoder<keys_strings=["a", "b"], values_floats=[1.5, 2.5], default_float=0.0>(t)
    y = Exp(i)
}"""
"""Texts that become numbers."""


def classifier() -> OnnxModule:
    """Return the module of CLASSIFIER."""
    return module_of(CLASSIFIER)
