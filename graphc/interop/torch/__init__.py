"""PyTorch models, through a backend of ``torch.compile`` and as modules of graphc (needs torch)."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import UnsupportedError
from graphc.base.installation import install_command
from graphc.base.lazy import exports

__all__ = ["explain"]  # pyright: ignore[reportUnsupportedDunderAll]

_load = exports(__name__, globals(), {"explain": "graphc.interop.torch.explanation:explain"})


def __getattr__(name: str) -> Any:
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        what = f"graphc.interop.torch.{name} needs PyTorch, which is not installed here"
        raise UnsupportedError(what, remedy=f"install PyTorch: {install_command('torch')}") from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
