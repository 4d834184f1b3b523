"""ONNX: models as modules of graphc, and a backend as the ``onnx`` package defines it (``prepare``, ``run_model``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.base.lazy import exports

if TYPE_CHECKING:
    from graphc.interop.onnx.backend import is_compatible, prepare, run_model, run_node, supports_device
    from graphc.interop.onnx.module import OnnxModule, from_onnx

__all__ = ["OnnxModule", "from_onnx", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]
__getattr__ = exports(
    __name__,
    globals(),
    {
        **{n: f"graphc.interop.onnx.module:{n}" for n in ("OnnxModule", "from_onnx")},
        **{
            n: f"graphc.interop.onnx.backend:{n}"
            for n in ("is_compatible", "prepare", "run_model", "run_node", "supports_device")
        },
    },
)
