"""Functions with suffix ``_copy``: copies of the views from the tensor methods without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.tensors.out import with_hints
from graphc.tensors.tensor import Tensor


def _copying(name: str) -> Callable[..., Any]:
    view = getattr(Tensor, name)

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        result = view(input, *args, **kwargs)
        return result.clone() if isinstance(result, Tensor) else tuple(item.clone() for item in result)

    function.__name__ = function.__qualname__ = f"{name}_copy"
    function.__doc__ = f"Return a copy of the result of ``Tensor.{name}``."
    function.__wrapped__ = view  # type: ignore[attr-defined]  # inspect.signature shows that of the method
    return with_hints(function)


as_strided_copy = _copying("as_strided")
detach_copy = _copying("detach")
diagonal_copy = _copying("diagonal")
expand_copy = _copying("expand")
narrow_copy = _copying("narrow")
permute_copy = _copying("permute")
select_copy = _copying("select")
split_copy = _copying("split")
split_with_sizes_copy = _copying("split_with_sizes")
squeeze_copy = _copying("squeeze")
t_copy = _copying("t")
transpose_copy = _copying("transpose")
unbind_copy = _copying("unbind")
unfold_copy = _copying("unfold")
unsqueeze_copy = _copying("unsqueeze")
view_copy = _copying("view")

_OWN = tuple(vars())
__all__ = [name for name in _OWN if name.endswith("_copy")]  # pyright: ignore[reportUnsupportedDunderAll]
