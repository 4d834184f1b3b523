"""Compiler of PyTorch-style modules to native code, with eager tensors, autograd and modules as front end."""
# ruff: noqa: F401  (imports for type checkers; at run time the names come from graphc/front.py or _LATER)

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from graphc.base.lazy import exports
from graphc.base.name_clash import warn_of_other_distributions as _warn_of_other_distributions
from graphc.base.version import VERSION as __version__

if TYPE_CHECKING:
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
        linalg,
        monitor,
        nn,
        optim,
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
    from graphc.front import *  # noqa: F403
    from graphc.front import (
        Size,
        bool,
        cdouble,
        cfloat,
        complex,
        double,
        e,
        float,
        half,
        inf,
        int,
        long,
        nan,
        newaxis,
        pi,
        short,
    )
    from graphc.func.jacobian import hessian, jacfwd, jacrev
    from graphc.interop.from_torch import from_torch
    from graphc.interop.onnx.module import from_onnx
    from graphc.interop.pt2.program import from_pt2
    from graphc.linalg.methods import chain_matmul, lu_unpack, pca_lowrank, svd_lowrank
    from graphc.models.model_entries import Entry
    from graphc.models.model_export import export
    from graphc.models.model_summary import summary
    from graphc.models.saved_file import load
    from graphc.monitor.compare import compare
    from graphc.monitor.debug import debug
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
    from graphc.runtime.threads import (
        get_num_interop_threads,
        get_num_threads,
        set_num_interop_threads,
        set_num_threads,
    )
    from graphc.steps.step import compile_step
    from graphc.tape.grad_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled
    from graphc.tape.grad_mode import set_detect_anomaly as set_anomaly_enabled
    from graphc.tracing.host import opaque
    from graphc.tracing.trace import is_tracing, trace

_LATER = {
    "Entry": "graphc.models.model_entries:Entry",
    "DynamicScale": "graphc.optim.loss_scale:DynamicScale",
    "accelerator": "graphc.accelerator",
    "amp": "graphc.amp",
    "array_api": "graphc.array_api",
    "autograd": "graphc.autograd",
    "backends": "graphc.backends",
    "build_library": "graphc.c_library.build:build_library",
    "check": "graphc.checks.model_check:check",
    "check_op": "graphc.checks.op_check:check_op",
    "checkpoint": "graphc.control.checkpoint:checkpoint",
    "checkpoint_sequential": "graphc.control.checkpoint:checkpoint_sequential",
    "compiler": "graphc.compiler",
    "compile": "graphc.calls.function:compile",
    "compile_step": "graphc.steps.step:compile_step",
    "cuda": "graphc.cuda",
    "compare": "graphc.monitor.compare:compare",
    "data": "graphc.data",
    "debug": "graphc.monitor.debug:debug",
    "define_op": "graphc.ops.define_op:define_op",
    "distributed": "graphc.distributed",
    "distributions": "graphc.distributions",
    "errors": "graphc.errors",
    "export": "graphc.models.model_export:export",
    "from_onnx": "graphc.interop.onnx.module:from_onnx",
    "from_pt2": "graphc.interop.pt2.program:from_pt2",
    "from_torch": "graphc.interop.from_torch:from_torch",
    "fft": "graphc.fft",
    "func": "graphc.func",
    "get_num_threads": "graphc.runtime.threads:get_num_threads",
    "grad": "graphc.autograd.transforms:grad",
    "hessian": "graphc.func.jacobian:hessian",
    "hooks": "graphc.hooks",
    "chain_matmul": "graphc.linalg.methods:chain_matmul",
    "linalg": "graphc.linalg",
    "lu_unpack": "graphc.linalg.methods:lu_unpack",
    "pca_lowrank": "graphc.linalg.methods:pca_lowrank",
    "svd_lowrank": "graphc.linalg.methods:svd_lowrank",
    "is_tracing": "graphc.tracing.trace:is_tracing",
    "jacfwd": "graphc.func.jacobian:jacfwd",
    "jacrev": "graphc.func.jacobian:jacrev",
    "jvp": "graphc.autograd.transforms:jvp",
    "load": "graphc.models.saved_file:load",
    "load_case": "graphc.checks.check_case:load_case",
    "load_state": "graphc.checkpoints.state_file:load_state",
    "load_weights": "graphc.checkpoints.weights:load_weights",
    "monitor": "graphc.monitor",
    "nn": "graphc.nn",
    "opaque": "graphc.tracing.host:opaque",
    "optim": "graphc.optim",
    "picture": "graphc.pages.show:picture",
    "random": "graphc.random",
    "replay": "graphc.monitor.replay:replay",
    "save": "graphc.checkpoints.pt_write:save",
    "save_state": "graphc.checkpoints.state_file:save_state",
    "associative_scan": "graphc.control.associative_scan:associative_scan",
    "cond": "graphc.control.branch:cond",
    "fori_loop": "graphc.control.while_loop:fori_loop",
    "map": "graphc.control.while_loop:map",
    "scan": "graphc.control.scan:scan",
    "switch": "graphc.control.branch:switch",
    "while_loop": "graphc.control.while_loop:while_loop",
    "serialize": "graphc.serialize",
    "signal": "graphc.signal",
    "special": "graphc.special",
    "selftest": "graphc.checks.self_test:selftest",
    "set_num_threads": "graphc.runtime.threads:set_num_threads",
    "summary": "graphc.models.model_summary:summary",
    "testing": "graphc.testing",
    "trace": "graphc.tracing.trace:trace",
    "value_and_grad": "graphc.autograd.transforms:value_and_grad",
    "vjp": "graphc.autograd.transforms:vjp",
    "utils": "graphc.utils",
    "version": "graphc.version",
    "vmap": "graphc.control.vmap:vmap",
}
_FUNCTIONAL = (
    *("adaptive_avg_pool1d", "avg_pool1d", "bilinear", "celu", "celu_", "channel_shuffle", "conv1d", "conv2d"),
    *("conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "hardshrink"),
    *("max_pool1d", "max_pool2d", "max_pool3d", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle"),
    *("prelu", "rms_norm", "rrelu", "rrelu_", "selu", "selu_", "threshold", "threshold_"),
)
"""Functions that PyTorch has both here and in ``nn.functional``."""
_REORDERED = (
    *("affine_grid_generator", "alpha_dropout", "alpha_dropout_", "batch_norm", "binary_cross_entropy_with_logits"),
    *("constant_pad_nd", "cosine_embedding_loss", "ctc_loss", "dropout", "dropout_", "embedding"),
    *("feature_alpha_dropout", "grid_sampler", "group_norm", "gru_cell", "hinge_embedding_loss", "instance_norm"),
    *("kl_div", "layer_norm", "lstm_cell", "margin_ranking_loss", "poisson_nll_loss", "rnn_relu_cell"),
    *("rnn_tanh_cell", "triplet_margin_loss"),
)
"""Functions of ``nn.functional`` that have other arguments here."""
_LATER |= {name: f"graphc.nn.functional:{name}" for name in _FUNCTIONAL}
_LATER |= {name: f"graphc.nn.functional.reordered:{name}" for name in _REORDERED}
_LATER |= {
    "OutOfMemoryError": "graphc.errors:MemoryLimitError",
    "adaptive_max_pool1d": "graphc.nn.functional:adaptive_max_pool1d_with_indices",
    "get_num_interop_threads": "graphc.runtime.threads:get_num_interop_threads",
    "grid_sampler_2d": "graphc.nn.functional.reordered:grid_sampler",
    "is_anomaly_check_nan_enabled": "graphc.tape.grad_mode:is_anomaly_check_nan_enabled",
    "is_anomaly_enabled": "graphc.tape.grad_mode:is_anomaly_enabled",
    "max_pool1d_with_indices": "graphc.nn.functional:max_pool1d_with_indices",
    "set_anomaly_enabled": "graphc.tape.grad_mode:set_detect_anomaly",
    "set_num_interop_threads": "graphc.runtime.threads:set_num_interop_threads",
}
"""Loaded at first use, to keep the import of graphc short; the imports above say the same to type checkers."""

_INTERNAL = ("TYPE_CHECKING", "annotations", "deferred", "exports", "ModuleType", "set_html_printer")
"""Names for this package only."""
_ALONE = ("errors", "get_num_threads", "load", "set_num_threads")
"""Names for programs that only run model files: loading them does not load the front end."""

__getattr__ = exports(__name__, globals(), _LATER, "graphc.front", alone=_ALONE, hidden=("map",))
_warn_of_other_distributions()


def __dir__() -> list[str]:
    named = {*__getattr__("__all__")}
    public = {n for n, v in globals().items() if not (n.startswith("_") or isinstance(v, ModuleType))}
    special = {n for n in globals() if n.startswith("__")}
    return sorted(named | special | public - {*_INTERNAL})
