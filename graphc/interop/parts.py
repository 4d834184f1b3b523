"""Imported models as trees of modules: submodules hold parameters and buffers by name, one graph computes the model."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import UnsupportedError
from graphc.base.records import dataclass
from graphc.nn.module import Module
from graphc.nn.parameter import Parameter
from graphc.tensors.tensor import Tensor


@dataclass(frozen=True)
class Member:
    """Tensor of an imported module. ``kind`` is param, buffer, or transient (a buffer outside of the state dict)."""

    path: str
    tensor: Tensor
    kind: str


class ImportedSubmodule(Module):
    """Submodule of an imported model. Holds its share of the parameters and buffers, and a training flag."""

    def __init__(self, kind: str = "Part"):
        super().__init__()
        self._kind = kind

    def _get_name(self) -> str:
        return self._kind

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Raise UnsupportedError: the model has one graph, so a submodule cannot be called."""
        raise UnsupportedError(
            f"{self._kind} is a submodule of an imported model and cannot be called: one graph computes the model",
            remedy="call the model, or import that submodule alone",
        )


class ImportedRoot(ImportedSubmodule):
    """Root module of an imported model, with its submodules by path."""

    def _put(self, path: str, kind: str, first: str | None) -> None:
        parent, _, name = path.rpartition(".")
        above = self._find(parent)
        if name not in above._modules:
            above.add_module(name, ImportedSubmodule(kind) if first is None else self._find(first))

    def _find(self, path: str) -> Module:
        module: Module = self
        for name in path.split(".") if path else ():
            inner = module._modules.get(name)
            if inner is None:
                inner = ImportedSubmodule()
                module.add_module(name, inner)
            module = inner
        return module

    def _add(self, member: Member) -> None:
        parent, _, name = member.path.rpartition(".")
        owner = self._find(parent)
        if member.kind == "param":
            assert isinstance(member.tensor, Parameter)
            owner.register_parameter(name, member.tensor)
        else:
            owner.register_buffer(name, member.tensor, persistent=member.kind == "buffer")

    def _tensors(self) -> dict[str, Tensor]:
        tensors = dict(self.named_buffers(remove_duplicate=False))
        tensors.update(self.named_parameters(remove_duplicate=False))
        return tensors

    def _check_hooks(self) -> None:
        for path, module in self.named_modules():
            if module is not self and module._has_hooks():
                raise UnsupportedError(
                    f"hooks of {path} would never run: one graph computes the model, so submodules are not called",
                    remedy="hook the model itself, or import that submodule alone",
                )
