"""PyTorch's import path of derivatives of functions at given inputs."""

from graphc.base.lazy import exports

# Imported at first use: these functions stand above tracing, which stands above this package.
__getattr__ = exports(
    __name__,
    globals(),
    {name: f"graphc.func.functional:{name}" for name in ("hessian", "hvp", "jacobian", "jvp", "vhp", "vjp")},
)
