"""How a load or store walks through memory along an axis: uniform, unit, strided or gathered."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from graphc.ir.kernel.index import Axis, Dynamic, Index, atoms


class Access(NamedTuple):
    """Where neighbouring iterations of a loop find their elements."""

    kind: str
    """``uniform``: the same element. ``unit``: the next one. ``strided``: one ``stride`` elements away. ``gathered``:
    it depends on data, or the index is not affine in the axis."""
    stride: int
    """Elements between neighbouring iterations, 0 where that is not one number."""

    @property
    def plain(self) -> bool:
        """Whether lanes are read or written by one plain vector operation, or by a broadcast."""
        return self.kind in ("uniform", "unit")


UNIFORM, UNIT, GATHERED = Access("uniform", 0), Access("unit", 1), Access("gathered", 0)


def access(index: Index, axis: Axis, varying: Container[str] | None = None) -> Access:
    """How an index moves along an axis. Run-time terms differ between iterations; given the names of the scalars that
    are ``varying``, only those do."""
    stride = 0
    for atom, coefficient in index.terms:
        if isinstance(atom, Axis):
            if atom == axis:
                stride = coefficient
            continue
        inner = (atom,) if isinstance(atom, Dynamic) else atoms(atom.operand)
        if any([a == axis or (isinstance(a, Dynamic) and (varying is None or a.name in varying)) for a in inner]):
            return GATHERED
    return UNIFORM if stride == 0 else UNIT if stride == 1 else Access("strided", stride)
