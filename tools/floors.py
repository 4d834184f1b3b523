"""The floors of the house: every package of graphc from the bottom up, and which others it may import."""

from __future__ import annotations

FLOORS: dict[str, tuple[str, ...]] = {
    "base": (),
    "files": ("base",),
    # Facts that compiled code relies on: traces record them, calls check them.
    "guards": ("base",),
    # Two intermediate representations, with their shared parts.
    "ir": ("base",),
    "ir.kernel": ("base", "ir"),
    "ir.graph": ("base", "ir"),
    "ops": ("base", "ir", "ir.kernel", "ir.graph"),
    # Targets. The machine's package stands low, since its facts and costs also decide fusion and memory layout. Its
    # parent holds the back end, whose other packages follow below.
    "codegen": (),
    "codegen.machine": ("base",),
    # From a graph to kernels.
    "passes": ("base", "ir", "ir.kernel", "ir.graph", "ops", "codegen.machine"),
    "fusion": ("base", "ir", "ir.kernel", "ir.graph", "codegen.machine", "passes"),
    "recompute": ("base", "ir", "ir.graph", "ops", "codegen.machine", "passes", "fusion"),
    "lowering": ("base", "ir", "ir.kernel", "ir.graph", "ops", "codegen.machine", "passes", "fusion"),
    # From kernels to native code: knows loop nests and targets, no op, no graph.
    "codegen.schedule.loops": ("base", "ir.kernel", "codegen.machine"),
    "codegen.schedule.memory": ("base", "files", "ir.kernel", "codegen.machine"),
    "codegen.schedule.expansion": ("base", "ir.kernel"),
    "codegen.schedule.lanes": ("base", "ir.kernel", "codegen.machine", "codegen.schedule.loops"),
    "codegen.schedule.contraction": ("base", "files", "ir.kernel", "codegen.machine", "codegen.schedule.loops"),
    "codegen.schedule.reduce": (
        *("base", "ir.kernel", "codegen.machine", "codegen.schedule.loops", "codegen.schedule.memory"),
        *("codegen.schedule.contraction",),
    ),
    "codegen.schedule.estimate": ("base", "ir.kernel", "codegen.machine"),
    "codegen.schedule.threads": (
        *("base", "files", "ir.kernel", "codegen.machine", "codegen.schedule.contraction"),
        *("codegen.schedule.estimate",),
    ),
    "codegen.schedule.blocks": (
        *("base", "ir.kernel", "codegen.machine", "codegen.schedule.loops", "codegen.schedule.memory"),
    ),
    "codegen.schedule.gpu": (
        *("base", "ir.kernel", "codegen.machine", "codegen.schedule.loops", "codegen.schedule.contraction"),
    ),
    "codegen.schedule": (
        *("base", "ir.kernel", "codegen.machine", "codegen.schedule.loops", "codegen.schedule.memory"),
        *("codegen.schedule.expansion", "codegen.schedule.lanes", "codegen.schedule.contraction"),
        *("codegen.schedule.reduce", "codegen.schedule.estimate", "codegen.schedule.threads"),
        *("codegen.schedule.blocks", "codegen.schedule.gpu"),
    ),
    # The text of the other target: the same loop nests for the threads of a GPU.
    "codegen.cuda": ("base", "ir.kernel", "codegen.machine", "codegen.schedule.expansion"),
    "codegen.llvm": (
        *("base", "files", "ir.kernel", "codegen.machine", "codegen.schedule.expansion"),
        *("codegen.schedule.lanes", "codegen.schedule.contraction", "codegen.schedule.threads"),
    ),
    # Object formats: shared libraries, archives, and their dependencies.
    "codegen.link.soft_float": ("base",),
    "codegen.link": ("base", "codegen.machine", "codegen.link.soft_float"),
    # Properties proven of machine code, from its assembly and from the object code compared with it.
    "codegen.proof": ("base", "codegen.machine", "codegen.llvm", "codegen.link"),
    # Functions through which Python and others call a program.
    "codegen.door": ("codegen.machine",),
    # Loads and calls compiled programs; needs no compiler.
    "runtime": ("base", "files", "guards", "codegen.link"),
    "compiler": (
        *("base", "files", "guards", "ir", "ir.kernel", "ir.graph", "ops", "codegen.machine", "passes", "fusion"),
        *("recompute", "lowering", "codegen.schedule.memory", "codegen.schedule.contraction"),
        *("codegen.schedule.estimate", "codegen.schedule.threads", "codegen.schedule", "codegen.cuda"),
        *("codegen.llvm", "codegen.proof", "codegen.link", "codegen.door", "runtime"),
    ),
    # What users write with.
    "tape": ("base", "ops"),
    "tensors": ("base", "ir", "ops", "tape"),
    "autograd": ("base", "ir", "ir.graph", "ops", "tape", "tensors"),
    "eager": ("base", "ir", "ir.graph", "ops", "tape", "tensors", "autograd"),
    "tracing": ("base", "guards", "ir", "ir.graph", "ops", "tape", "tensors", "autograd", "eager"),
    "control": ("base", "ir", "ir.graph", "ops", "passes", "tape", "tensors", "autograd", "tracing"),
    # Several processes: collectives on arrays, and on tensors.
    "distributed": ("base", "runtime", "tensors", "autograd", "tracing"),
    # Matrices: native code for small ones, calls of numpy for large ones.
    "linalg": ("base", "ops", "tensors", "autograd", "tracing"),
    "array_api": ("base", "ops", "tensors", "tracing", "linalg"),
    "nn": ("base", "guards", "ir", "ops", "tape", "tensors", "autograd", "eager", "tracing", "distributed", "linalg"),
    "optim": ("base", "guards", "ir", "ops", "tape", "tensors", "tracing", "distributed", "nn"),
    # Sums over batches of how outputs compare with targets.
    "metrics": ("base", "tape", "tensors", "tracing", "distributed", "nn"),
    # Trained models with 8-bit layers.
    "quantization": ("base", "tape", "tensors", "nn"),
    # Functions of functions: Jacobians, Hessians, gradient checks.
    "func": ("base", "ops", "tape", "tensors", "autograd", "tracing", "control", "nn"),
    # Solvers: differential equations, equations, minima, and interpolation.
    "optimize": ("base", "tape", "tensors", "autograd", "tracing", "control", "linalg", "func"),
    "integrate": (
        *("base", "ir", "ir.graph", "ops", "tape", "tensors", "autograd", "tracing", "control", "linalg", "func"),
        "optimize",
    ),
    "interpolate": ("base", "tensors", "control"),
    "distributions": ("base", "ops", "tape", "tensors", "linalg"),
    "signal": ("base", "tensors"),
    "data": ("base", "files", "tensors", "distributed"),
    "checkpoints": ("base", "files", "tape", "tensors", "distributed", "nn"),
    "monitor": ("base", "files", "ir", "ops", "tape", "tensors", "autograd", "tracing", "nn", "optim", "checkpoints"),
    # Functions compiled on their first call, training steps, model files.
    "calls": (
        *("base", "files", "guards", "ir", "ir.graph", "ops", "codegen.machine", "passes", "runtime", "compiler"),
        *("tape", "tensors", "autograd", "tracing", "nn", "optim"),
    ),
    "steps": (
        *("base", "guards", "ir", "ir.graph", "ops", "passes", "runtime", "compiler", "tape", "tensors", "autograd"),
        *("tracing", "distributed", "nn", "optim", "calls"),
    ),
    # Loops of trainings over batches, with validation, checkpoints and a history.
    "training": (
        *("base", "files", "tape", "tensors", "tracing", "distributed", "nn", "optim", "data", "checkpoints"),
        *("monitor", "metrics", "calls", "steps"),
    ),
    "models": (
        *("base", "files", "ir", "ir.graph", "ops", "codegen.machine", "passes", "runtime", "compiler", "tape"),
        *("tensors", "autograd", "tracing", "nn", "calls", "steps"),
    ),
    # The same computation in two ways; the compiler does not depend on it.
    "checks": (
        *("base", "files", "ir", "ir.kernel", "ir.graph", "ops", "codegen.machine", "passes", "codegen.schedule"),
        *("compiler", "tape", "tensors", "tracing", "nn", "quantization", "calls", "steps", "models"),
    ),
    # Models of sequences as steps with states.
    "streams": ("base", "ir", "ir.graph", "ops", "tensors", "tracing", "nn", "calls", "checks"),
    # Language models from files.
    "llm": ("base", "files", "ops", "tape", "tensors", "tracing", "nn", "checkpoints", "calls", "models"),
    # Models as C libraries.
    "c_library": (
        *("base", "files", "ir.kernel", "ir.graph", "codegen.machine", "passes", "codegen.llvm", "codegen.link"),
        *("codegen.door", "runtime", "compiler", "calls", "models"),
    ),
    # Models and tensors of other frameworks. One table maps ATen operators, for all sources of graphs.
    "interop": ("base", "tensors", "nn"),
    "interop.aten": (
        *("base", "ir.graph", "tape", "tensors", "autograd", "tracing", "control", "linalg", "nn"),
        *("checks", "interop"),
    ),
    "interop.pt2": ("base", "files", "tensors", "nn", "interop", "interop.aten"),
    "interop.torch": (
        *("base", "files", "ir.graph", "ops", "runtime", "compiler", "tensors", "tracing", "nn", "calls", "checks"),
        *("interop", "interop.aten"),
    ),
    "interop.onnx": ("base", "ops", "tape", "tensors", "autograd", "tracing", "control", "nn", "interop"),
    "interop.stablehlo": (*("base", "files", "ir", "ops", "tensors", "tracing", "control", "linalg", "nn", "interop"),),
    "interop.onnx_export": ("base", "files", "ir", "ir.graph", "ops", "tensors", "tracing", "nn", "calls", "models"),
    # Pictures of graphs, and pages that show the stages from a graph to its kernels.
    "pages": (
        *("base", "files", "ir", "ir.kernel", "ir.graph", "codegen.machine", "passes", "compiler", "tape", "tensors"),
        *("autograd", "nn"),
    ),
    "cli": (
        *("base", "files", "ir.kernel", "ir.graph", "codegen.machine", "passes", "fusion", "codegen.cuda", "runtime"),
        *("compiler", "tensors", "tracing", "nn", "data", "checkpoints", "metrics", "monitor", "calls", "training"),
        *("models", "checks", "llm", "pages"),
    ),
}
"""Allowed imports: each package may import itself and the packages in its row, all of which stand before it. A package
without a row belongs to the enclosing one (``nn.functional``); one at the top must have a row."""
LATE_EDGES: dict[tuple[str, str], str] = {
    ("base", "nn"): "the list of public names tells where each is defined",
    ("base", "tensors"): "the list of public names tells where each is defined",
    ("base", "optim"): "the list of public names tells where each is defined",
    ("ir.graph", "ops"): "the text of a graph names ops, so parsing it needs their definitions",
    ("ops", "eager"): "the eager dispatcher computes an op outside of a trace",
    ("compiler", "tracing"): "`graphc.compiler` hands on PyTorch's `torch.compiler` under its import path",
    ("compiler", "calls"): "`graphc.compiler` hands on PyTorch's `torch.compiler` under its import path",
    ("tensors", "control"): "methods of tensors that loop as long as a condition holds",
    ("tensors", "nn"): "methods of tensors that PyTorch has as functions of nn.functional, too",
    ("tensors", "linalg"): "methods of tensors that PyTorch has for matrices",
    ("tensors", "array_api"): "NumPy's protocols and the array API ask a tensor for its namespace",
    ("tensors", "calls"): "eager code that repeats is compiled, and so are random draws",
    ("autograd", "control"): "tangents of loops and branches come from loops and branches of values and tangents",
    ("autograd", "func"): "`graphc.autograd` hands on functional and gradcheck under PyTorch's import path",
    ("distributed", "optim"): "`graphc.distributed` hands on its optimizers under PyTorch's import path",
    ("distributed", "checkpoints"): "`graphc.distributed` hands on its checkpoints under PyTorch's import path",
    ("nn", "calls"): "`Module.compile` is a method",
    ("checks", "interop.aten"): "a case may hold an operator of PyTorch, whose rule runs again",
    ("models", "interop.onnx"): "a model file of an ONNX model may hold its operators on texts",
    ("models", "interop.onnx_export"): "`export` writes ONNX where the path ends in .onnx",
    ("interop", "interop.stablehlo"): "`from_jax` is public where JAX is not installed",
    ("interop", "interop.torch"): "`from_torch` is public where PyTorch is not installed",
}
"""Late imports against the floors, each with the reason: a package names another one in a string and imports it on
first use. Any other such edge is an error (`tools.house`)."""
FRONT_DOOR = frozenset(
    {
        "__init__",
        "__main__",
        "accelerator",
        "amp",
        "backends",
        "cuda",
        "errors",
        "fft",
        "front",
        "hooks",
        "names",
        "public",
        "random",
    }
    | {"serialize", "special", "testing", "utils", "version", "view"}
)
"""Modules at the top of the package: import paths that users and pickles know; they only re-export names from below."""


def floor_of(module: str) -> str | None:
    """Return the listed package to which a module of graphc belongs, ``ir.kernel`` for ``graphc.ir.kernel.text``; None
    for the front door. Raise KeyError for a package at the top without a row."""
    names = module.split(".")[1:]
    for length in range(len(names), 0, -1):
        name = ".".join(names[:length])
        if name in FLOORS:
            return name
    if not names or names[0] in FRONT_DOOR:
        return None
    raise KeyError(module)


def imports_allowed(here: str, there: str) -> bool:
    """Return whether a floor may import another one."""
    return here == there or there in FLOORS[here]
