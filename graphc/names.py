"""Names of the package that are loaded at first use: read, not run (``base.lazy.imported_by``)."""

from graphc import (
    accelerator,
    amp,
    array_api,
    autograd,
    backends,
    compiler,
    cuda,
    data,
    distributed,
    distributions,
    errors,
    fft,
    func,
    hooks,
    integrate,
    interpolate,
    linalg,
    llm,
    metrics,
    monitor,
    nn,
    optim,
    optimize,
    quantization,
    random,
    serialize,
    signal,
    special,
    testing,
    utils,
    version,
)
from graphc.autograd.transforms import grad, jvp, value_and_grad, vjp
from graphc.c_library.build import build_library
from graphc.calls.function import compile
from graphc.checkpoints.pt_write import save
from graphc.checkpoints.state_file import load_state, save_state
from graphc.checkpoints.weights import load_weights
from graphc.checks.check_case import load_case
from graphc.checks.model_check import check
from graphc.checks.op_check import check_op
from graphc.checks.self_test import selftest
from graphc.control.associative_scan import associative_scan
from graphc.control.branch import cond, switch
from graphc.control.checkpoint import checkpoint, checkpoint_sequential
from graphc.control.scan import scan
from graphc.control.vmap import vmap
from graphc.control.while_loop import fori_loop, map, while_loop
from graphc.errors import MemoryLimitError as OutOfMemoryError
from graphc.func.jacobian import hessian, jacfwd, jacrev
from graphc.interop.from_jax import from_jax
from graphc.interop.from_torch import from_torch
from graphc.interop.onnx.module import from_onnx
from graphc.interop.pt2.program import from_pt2
from graphc.interop.stablehlo.module import from_stablehlo
from graphc.linalg.methods import chain_matmul, lu_unpack, pca_lowrank, svd_lowrank
from graphc.models.model_entries import Entry
from graphc.models.model_export import export
from graphc.models.model_summary import summary
from graphc.models.saved_file import load
from graphc.monitor.compare import compare
from graphc.monitor.debug import debug
from graphc.monitor.profile import profile
from graphc.monitor.replay import replay
from graphc.nn.functional import (
    adaptive_avg_pool1d,
    avg_pool1d,
    bilinear,
    celu,
    celu_,
    channel_shuffle,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    cosine_similarity,
    hardshrink,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool3d,
    pairwise_distance,
    pdist,
    pixel_shuffle,
    pixel_unshuffle,
    prelu,
    rms_norm,
    rrelu,
    rrelu_,
    selu,
    selu_,
    threshold,
    threshold_,
)
from graphc.nn.functional import adaptive_max_pool1d_with_indices as adaptive_max_pool1d
from graphc.nn.functional.reordered import (
    affine_grid_generator,
    alpha_dropout,
    alpha_dropout_,
    batch_norm,
    binary_cross_entropy_with_logits,
    constant_pad_nd,
    cosine_embedding_loss,
    ctc_loss,
    dropout,
    dropout_,
    embedding,
    feature_alpha_dropout,
    grid_sampler,
    group_norm,
    gru_cell,
    hinge_embedding_loss,
    instance_norm,
    kl_div,
    layer_norm,
    lstm_cell,
    margin_ranking_loss,
    poisson_nll_loss,
    rnn_relu_cell,
    rnn_tanh_cell,
    triplet_margin_loss,
)
from graphc.nn.functional.reordered import grid_sampler as grid_sampler_2d
from graphc.ops.define_op import define_op
from graphc.optim.loss_scale import DynamicScale
from graphc.pages.show import picture
from graphc.quantization.quantize import quantize
from graphc.quantization.report import quantization_report
from graphc.runtime.threads import (
    get_num_interop_threads,
    get_num_threads,
    set_num_interop_threads,
    set_num_threads,
)
from graphc.steps.step import compile_step
from graphc.streams.stream import stream
from graphc.tape.grad_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled
from graphc.tape.grad_mode import set_detect_anomaly as set_anomaly_enabled
from graphc.tensors.spectra.short_time import istft, stft
from graphc.tensors.spectra.windows import (
    bartlett_window,
    blackman_window,
    hamming_window,
    hann_window,
    kaiser_window,
)
from graphc.tracing.host import opaque
from graphc.tracing.trace import is_tracing, trace
from graphc.training.fit import fit
