"""Shares of ONNX's domains that graphc computes, measured against the operators of ONNX Runtime's CPU provider.

``python -m tools.pages.onnx_domains`` prints the operators of the installed onnxruntime in the form of this file.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib import import_module
from textwrap import fill

RUNTIME = "ONNX Runtime 1.32.0"
"""Origin of ``OPERATORS``."""
_INTERNAL = frozenset({"MemcpyFromHost", "MemcpyToHost", "SampleOp"})
"""Operators that no file contains."""
OPERATORS: dict[str, str] = {
    "ai.onnx": """
        Abs Acos Acosh Add Affine AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool
        BatchNormalization BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow Cast Ceil Celu
        Clip Col2Im Compress Concat ConcatFromSequence ConstantOfShape Conv ConvInteger ConvTranspose Cos Cosh Crop
        CumProd CumSum DFT DeformConv DepthToSpace DequantizeLinear Det Div Dropout DynamicQuantizeLinear
        DynamicSlice Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor GRU Gather GatherElements GatherND Gelu
        Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual GridSample HammingWindow HannWindow
        HardSigmoid Hardmax Identity If ImageScaler InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization
        LeakyRelu Less LessOrEqual Log LogSoftmax Loop LpNormalization LpPool MatMul MatMulInteger Max MaxPool
        MaxRoiPool MaxUnpool Mean MeanVarianceNormalization MelWeightMatrix Min Mod Mul Multinomial Neg
        NonMaxSuppression NonZero Not OneHot Optional OptionalGetElement OptionalHasElement Or PRelu Pad
        ParametricSoftplus Pow QLinearConv QLinearMatMul QuantizeLinear RMSNormalization RNN RandomNormal
        RandomNormalLike RandomUniform RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum
        ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare RegexFullMatch Relu
        Reshape Resize ReverseSequence RoiAlign RotaryEmbedding Round STFT Scale ScaledTanh Scan Scatter
        ScatterElements ScatterND Selu SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert
        SequenceLength Shape Shrink Sigmoid Sign SimplifiedLayerNormalization Sin Sinh Size Slice Softmax Softplus
        Softsign SpaceToDepth Split SplitToSequence Sqrt Squeeze StringConcat StringNormalizer StringSplit Sub Sum
        Tan Tanh TensorScatter TfIdfVectorizer ThresholdedRelu Tile TopK Transpose Trilu Unique Unsqueeze Upsample
        Where Xor
    """,
    "ai.onnx.ml": """
        ArrayFeatureExtractor Binarizer CastMap CategoryMapper DictVectorizer FeatureVectorizer Imputer LabelEncoder
        LinearClassifier LinearRegressor Normalizer OneHotEncoder SVMClassifier SVMRegressor Scaler TreeEnsemble
        TreeEnsembleClassifier TreeEnsembleRegressor ZipMap
    """,
    "com.microsoft": """
        Attention AttnLSTM BeamSearch BiasGelu BifurcationDetector BranchwiseRMSNorm CDist CausalConvWithState
        ConvTransposeWithDynamicPads CropAndResize DecoderMaskedMultiHeadAttention DequantizeLinear
        DynamicQuantizeLSTM DynamicQuantizeMatMul DynamicTimeWarping EmbedLayerNormalization EngramGate ExpandDims
        FastGelu FusedConv FusedGemm FusedMatMul GatedAdd GatedDeltaNet GatedRMSNorm GatherBlockQuantized GatherND
        GatherPacked Gelu GreedySearch GridSample GroupQueryAttention HyperConnectionPostMix HyperConnectionPreMix
        Inverse LinearAttention LinearAttentionGate MRotaryEmbedding MatMulBnb4 MatMulFpQ4 MatMulInteger16
        MatMulIntegerToFloat MatMulNBits MaxpoolWithMask MoE MoEGroupRouter MultiHeadAttention MurmurHash3
        NGramHashMapping NGramRepeatBlock NhwcMaxPool Pad QAttention QEmbedLayerNormalization QGemm QLinearAdd
        QLinearAveragePool QLinearConcat QLinearConv QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul
        QLinearSigmoid QLinearSoftmax QLinearWhere QMoE QuantizeLinear QuickGelu Range RotaryEmbedding Sampling
        ScaledSiLU SkipLayerNormalization SkipSimplifiedLayerNormalization SparseAttention SparseToDenseMatMul
        Tokenizer TransposeMatMul Trilu UnfoldTensor Unique VarlenCausalConvWithState VarlenNGramHashMapping
        WhisperBeamSearch WordConvEmbedding
    """,
    "com.microsoft.nchwc": """
        AveragePool Conv GlobalAveragePool GlobalMaxPool MaxPool ReorderInput ReorderOutput Upsample
    """,
}
"""Operators with a CPU kernel, by domain."""


def share_table(computed: Iterable[tuple[str, str]]) -> str:
    """Return a table of the domains: counts of operators, counts of the computed ones, and the names of the others."""
    names = {f"{domain or 'ai.onnx'}.{name}" for domain, name in computed}
    lines = [f"| domain | operators of {RUNTIME} (CPU) | of these here | not here |", "|---|---|---|---|"]
    for domain, text in OPERATORS.items():
        operators = text.split()
        missing = [name for name in operators if f"{domain}.{name}" not in names]
        shown = ", ".join(f"`{name}`" for name in missing)
        lines.append(f"| {domain} | {len(operators)} | {len(operators) - len(missing)} | {shown} |")
    return "\n".join(lines)


def installed() -> Mapping[str, set[str]]:
    """Return the operators with a CPU kernel in the installed onnxruntime, by domain."""
    kernels = import_module("onnxruntime.capi.onnxruntime_pybind11_state").get_all_opkernel_def()
    operators: dict[str, set[str]] = defaultdict(set)
    for kernel in kernels:
        if kernel.provider == "CPUExecutionProvider" and kernel.op_name not in _INTERNAL:
            operators[kernel.domain or "ai.onnx"].add(kernel.op_name)
    return operators


def main() -> int:
    """Print the operators of the installed onnxruntime."""
    for domain, names in installed().items():
        text = fill(" ".join(sorted(names)), 116, initial_indent=" " * 8, subsequent_indent=" " * 8)
        print(f'    "{domain}": """\n{text}\n    """,')
    return 0


if __name__ == "__main__":
    sys.exit(main())
