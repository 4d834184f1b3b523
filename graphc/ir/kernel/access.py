"""Memory access pattern of a load or store along an axis: uniform, unit, strided or gathered."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from graphc.ir.kernel.index import Axis, Dynamic, Index, atoms


class Access(NamedTuple):
    """Access pattern of neighbouring iterations of a loop."""

    kind: str
    """``uniform``: the same element. ``unit``: the next one. ``strided``: one at a distance of ``stride`` elements.
    ``gathered``: data-dependent, or an index that is not affine in the axis."""
    stride: int
    """Elements between neighbouring iterations, 0 if this is not a single number."""

    @property
    def plain(self) -> bool:
        """Whether one plain vector operation, or a broadcast, reads or writes the lanes."""
        return self.kind in ("uniform", "unit")


UNIFORM, UNIT, GATHERED = Access("uniform", 0), Access("unit", 1), Access("gathered", 0)


def access(index: Index, axis: Axis, varying: Container[str] | None = None) -> Access:
    """Classify how an index moves along an axis. Run-time terms count as different between iterations; with
    ``varying``, the names of varying scalars, only those do."""
    stride = 0
    for atom, coefficient in index.terms:
        if type(atom) is Axis:
            if atom is axis or (atom.name == axis.name and atom == axis):
                stride = coefficient
            continue
        for a in (atom,) if type(atom) is Dynamic else atoms(atom.operand):
            if (varying is None or a.name in varying) if type(a) is Dynamic else a == axis:
                return GATHERED
    return UNIFORM if stride == 0 else UNIT if stride == 1 else Access("strided", stride)
