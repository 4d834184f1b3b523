"""Compilation of graphs to callable programs: joins passes, code generation and runtime."""

from graphc.base.lazy import exports

__getattr__ = exports(
    __name__,
    globals(),
    {name: f"graphc.calls.torch_arguments:{name}" for name in ("cudagraph_mark_step_begin", "list_backends", "reset")}
    | {
        "disable": "graphc.tracing.host:disable",
        "is_compiling": "graphc.tracing.trace:is_tracing",
        "is_dynamo_compiling": "graphc.tracing.trace:is_tracing",
    },
)
"""Names of ``torch.compiler`` for users of PyTorch."""
