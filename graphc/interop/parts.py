"""Models of other frameworks as trees of modules: names of parameters and buffers, one graph for the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphc.base.errors import UnsupportedError
from graphc.nn.module import Module
from graphc.nn.parameter import Parameter
from graphc.tensors.tensor import Tensor


@dataclass(frozen=True)
class Member:
    """A tensor of a module: ``kind`` is param, buffer, or transient for a buffer that is not in the state."""

    path: str
    tensor: Tensor
    kind: str


class Part(Module):
    """A module of an imported model: it holds its part of the parameters and buffers, and a training flag."""

    def __init__(self, kind: str = "Part"):
        super().__init__()
        self._kind = kind

    def _get_name(self) -> str:
        return self._kind

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """A part has no graph of its own: raises UnsupportedError."""
        raise UnsupportedError(
            f"{self._kind} is a part of an imported model, which has one graph for the whole",
            remedy="an import of that part alone",
        )


class Whole(Part):
    """The module of a whole model, with parts by paths."""

    def _put(self, path: str, kind: str, first: str | None) -> None:
        parent, _, name = path.rpartition(".")
        above = self._find(parent)
        if name not in above._modules:
            above.add_module(name, Part(kind) if first is None else self._find(first))

    def _find(self, path: str) -> Module:
        found: Module = self
        for name in path.split(".") if path else ():
            inner = found._modules.get(name)
            if inner is None:
                inner = Part()
                found.add_module(name, inner)
            found = inner
        return found

    def _add(self, member: Member) -> None:
        parent, _, name = member.path.rpartition(".")
        owner = self._find(parent)
        if member.kind == "param":
            assert isinstance(member.tensor, Parameter)
            owner.register_parameter(name, member.tensor)
        else:
            owner.register_buffer(name, member.tensor, persistent=member.kind == "buffer")

    def _tensors(self) -> dict[str, Tensor]:
        held = dict(self.named_buffers(remove_duplicate=False))
        held.update(self.named_parameters(remove_duplicate=False))
        return held

    def _check_hooks(self) -> None:
        for path, part in self.named_modules():
            if part is not self and part._has_hooks():
                raise UnsupportedError(
                    f"hooks of {path}: the graph is one for the whole model, so parts are not called",
                    remedy="hooks of the model itself, or an import of that part alone",
                )
