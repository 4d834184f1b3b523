"""Generate docs/torch_names.md: the public names of PyTorch, the same names in graphc, and why one is missing.

Needs torch.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections import defaultdict
from types import ModuleType
from typing import Any

from graphc.errors import GraphcError
from tools.pages import page_command

SPACES = (
    *("torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils"),
    *("torch.nn.utils.parametrizations", "torch.nn.utils.parametrize", "torch.nn.utils.rnn", "torch.optim"),
    *("torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.utils.data", "torch.utils.checkpoint"),
    *("torch.autograd", "torch.autograd.functional", "torch.func", "torch.random", "torch.testing", "torch.cuda"),
    *("torch.compiler", "torch.accelerator", "torch.special", "torch.distributions", "torch.nn.utils.prune"),
    *("torch.linalg", "torch.fft", "torch.amp", "torch.signal.windows"),
)
"""Compared namespaces; ``torch.Tensor`` means its methods and properties."""
_LISTED = ("torch.nn", "torch.nn.functional", "torch.nn.init", "torch.optim")
"""Modules whose ``__all__`` leaves out documented names."""
_OLD = "deprecated by PyTorch"
_SPARSE = "tensors are dense"
_QUANTIZED = "no quantized tensors exist; `precision=` stores weights narrow"
_COMPLEX = "`z.imag == 0`, `z.copy_(z.conj())`; conjugates and negatives are computed immediately"
_NARROW = "`graphc.empty(n, dtype=graphc.int16)`; tensor classes exist for the types of old programs"
_LIBRARY = "entry point of a library that PyTorch calls internally"
_COMPILER = "internal to PyTorch's compilers and C++ core"
_MEMORY = "memory belongs to numpy: `tensor.numpy()`, `tensor.data = other`, `reshape`"
_GPU = "streams, pools and figures of a GPU's driver"
_ALGEBRA = "linear algebra: see `graphc.linalg`"
_SIGNAL = "functions: `graphc.stft`, `graphc.istft`"
REASONS: tuple[tuple[str, str], ...] = (
    (r"(Sparse|sparse|smm|spmm|hspmm|hsmm|dsmm|saddmm|sspaddmm|coalesce|(crow|ccol|row|col)_indices)", _SPARSE),
    (r"\.(indices|values|sparse_mask|(indices|values)_copy)$", _SPARSE),
    (r"(quant|qint|quint|q_|qscheme|int_repr|choose_qparams|fake_|fused_moving)", _QUANTIZED),
    (r"\.(u?int[1-7]|bits\w*|bit|float[48]\w*|float4\w*|complex32|chalf)$", "types of few bits"),
    (r"(cfloat|cdouble|complex|conj|angle|polar|imag|as_real|real$|_neg$)", _COMPLEX),
    (r"(bfloat16|float16|\bhalf|u?int16|uint32|uint64|short|Short|Half|BFloat16)", _NARROW),
    (r"(autocast|GradScaler)", "the state of `graphc.autocast`, a context; `graphc.amp.GradScaler`"),
    (r"(cudnn|mkldnn|miopen|fbgemm|native_|\.batch_norm_\w+|_convolution)", _LIBRARY),
    (r"\.(convolution|conv_tbc|embedding_bag|embedding_renorm_|feature_dropout_?|feature_alpha_dropout_)$", _LIBRARY),
    (r"\.(gru|lstm|rnn_tanh|rnn_relu)$", "layers are called as modules, `nn.LSTM`; cells are functions, too"),
    (r"\.(grid_sampler_3d|slice_copy|slice_inverse|alias_copy|norm_except_dim|hash_tensor)$", _LIBRARY),
    (r"(stft|_window)$", _SIGNAL),
    (r"\.(binomial)$", "`graphc.distributions.Binomial`"),
    (r"(cholesky|\.det$|\.eig$|inverse|lstsq|\.lu|lobpcg|logdet|matrix_\w+|orgqr|\.qr$)", _ALGEBRA),
    (r"linalg\.ldl_", "factors of symmetric matrices: `linalg.cholesky`, `linalg.lu`, `linalg.eigh`"),
    (r"amp\.custom_", "custom Functions see the element types that `autocast` gives"),
    (r"(slogdet|solve$|svd|symeig|_norm$)", _ALGEBRA),
    (r"\.(sym_\w+|Sym\w+)", "sizes are numbers of Python, in traces too: `max`, `min`, `int`, operators"),
    (r"(Storage|storage|resize|\.set_$|from_file|const_data_ptr)", _MEMORY),
    (r"\.(Container|NLLLoss2d|CrossMapLRN2d|NestedIOFunction|assert_allclose|reinforce)$", _OLD),
    (
        r"(\.factory_kwargs|BroadcastingList\d|boolean_dispatch|assert_int_or_pair|handle_torch_function|(functional|fft)\.Tensor)$",
        _COMPILER,
    ),
    (
        r"(torch_function|thread_safe_generator|has_\w+|is_vulkan|wait|fork|profiler|grad_dtype|_type_list)",
        _COMPILER,
    ),
    (r"(ScalingType|SwizzleType|scaled_mm|grouped_mm)", "products of types of few bits"),
    (r"(DataPipe|DFIter|DataChunk|datapipe|argument_validation|runtime_validation|non_deterministic)", _OLD),
    (r"utils\.checkpoint\.", "parts of PyTorch's implementation; `checkpoint` and `checkpoint_sequential` are there"),
    (r"\.(to_padded_tensor|dense_dim|sparse_dim)$", _SPARSE),
    (r"\.(ipu|mtia|xpu)$", "graphc has no such device"),
    (r"\.(index|module_load|record_stream|map2|unify\w*|get_device_module|is_storage|is_distributed)$", _COMPILER),
    (r"parametrize\.", "`cached` would keep values that compiled code computes where it needs them"),
    (r"rnn\.invert_permutation", _LIBRARY),
    (r"special\.", "orthogonal polynomials, Airy's function, and Bessel functions of the second kind"),
    (r"distributions\.", "distributions, transforms and tables of transforms that graphc lacks"),
    (r"optim\.swap_in", "parts of PyTorch's implementation"),
    (r"autograd\.(enforce|set_multithreading)", "gradients are computed by one thread"),
    (r"func\.replace_all_batch_norm", "`nn.BatchNorm2d(..., track_running_stats=False)`"),
    (r"func\.rearrange", "`reshape` and `permute`"),
    (r"func\.", "for graphs of PyTorch; `graphc.trace` gives one of graphc"),
    (r"testing\.", "for PyTorch's own tests"),
    (r"(cuda|accelerator)\.", _GPU),
    (r"compiler\.", "switches of `torch.compile`"),
    (r"torch\.[A-Z]\w*$|(import_ir|parse_|merge_type|init_num_threads|_trace|PRIVATE)", _COMPILER),
)
"""Reasons for missing names: the first pattern that matches ``space.name`` applies."""
HEAD = """# Names of PyTorch

Public names of PyTorch {version} that exist here under the same path, with `graphc` for `torch`, and the reasons for
missing ones; generated by `python -m tools.pages.torch_names --write`. For differences in meaning see
[Coming from PyTorch](coming_from_pytorch.md).

| module | names | here |
|---|---|---|
"""


def names_of(space: str) -> list[str]:
    """Return the public names of a module of PyTorch, modules among them left out, or of its class of tensors."""
    owner = _owner(space)
    named = getattr(owner, "__all__", None)
    if isinstance(owner, type):
        named = dir(owner)
    elif named is None or space in _LISTED:
        own = [n for n in dir(owner) if (getattr(getattr(owner, n), "__module__", "") or "").startswith("torch")]
        named = [*own, *(named or ())]
    values = ((n, getattr(owner, n, None)) for n in set(named) if not n.startswith("_"))
    return sorted(n for n, value in values if not isinstance(value, ModuleType))


def _has(owner: Any, name: str) -> bool:
    """Return whether there is such a name, be it one that this tensor refuses."""
    try:
        return hasattr(owner, name)
    except GraphcError:
        return True


def missing(space: str) -> list[str]:
    """Return the names that graphc lacks."""
    try:
        mine = _owner("graphc" + space.removeprefix("torch"))
    except ImportError:
        return names_of(space)
    owner = mine([[0.0]]) if isinstance(mine, type) else mine  # instances have attributes that classes lack
    hidden = {"compile"} if space == "torch.compiler" else set()  # a module of graphc, not that function
    return [name for name in names_of(space) if name in hidden or not _has(owner, name)]


def reason(space: str, name: str) -> str:
    """Return why a name is missing; empty where no pattern says so."""
    return next((why for pattern, why in REASONS if re.search(pattern, f"{space}.{name}")), "")


def build_page() -> str:
    """Return the text of the page."""
    version = importlib.import_module("torch").__version__.partition("+")[0]
    lines = [HEAD.format(version=version).rstrip()]
    reasons: dict[str, list[str]] = defaultdict(list)
    for space in SPACES:
        absent = missing(space)
        lines.append(f"| `{space}` | {len(names_of(space))} | {len(names_of(space)) - len(absent)} |")
        for name in absent:
            reasons[reason(space, name)].append(f"`{(space + '.').removeprefix('torch.')}{name}`")
    lines += ["", "## Not here", "", "| why | names |", "|---|---|"]
    lines += [f"| {why} | {' '.join(names)} |" for why, names in sorted(reasons.items())]
    return "\n".join(lines) + "\n"


def _owner(space: str) -> Any:
    package, _, name = space.rpartition(".")
    if name == "Tensor":
        return getattr(importlib.import_module(package), name)
    return importlib.import_module(space)


if __name__ == "__main__":
    sys.exit(page_command.main_of("torch_names"))
