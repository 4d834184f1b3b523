"""Residues of dimensions: comparisons of sizes that are proven once remainders of dimensions are known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from graphc.base.records import NamedTuple
from graphc.base.sizes.named_dims import size_of
from graphc.base.sizes.size import Dimension, Quotient, always, at, is_size, terms
from graphc.base.sizes.size_questions import asker
from graphc.base.sizes.size_relations import trend
from graphc.base.sizes.size_terms import REMEMBERED, Terms, dimensions_of, terms_of

LARGEST_MODULUS = 1 << 10
"""Largest modulus of a guard. Above it, classes of sizes would have few members."""


class Residue(NamedTuple):
    """Remainder of a dimension by a number: ``dimension == modulus * (dimension // modulus) + remainder``."""

    modulus: int
    remainder: int

    @staticmethod
    def of(size: int, modulus: int) -> Residue:
        """Return the residue of a number."""
        return Residue(modulus, size % modulus)


Residues = Mapping[Dimension, Residue]


class _Substitution(dict[Dimension, Any]):
    """Dimensions as multiples plus remainders; dimensions without a residue stay."""

    def __init__(self, residues: Residues):
        super().__init__({d: _written_out(d, *residue) for d, residue in residues.items()})

    def __missing__(self, dimension: Dimension) -> Any:
        return size_of(dimension)


def _written_out(dimension: Dimension, modulus: int, remainder: int) -> Any:
    low, high = -((remainder - dimension.low) // modulus), (dimension.high - remainder) // modulus
    hint = sorted((low, (dimension.hint - remainder) // modulus, high))[1]
    quotient = Dimension(f"{dimension.name}_{modulus}_{remainder}", low, high, hint)
    return modulus * size_of(quotient) + remainder


def under(residues: Residues, size: Any) -> Any:
    """Return a size with multiples plus remainders in place of dimensions with a residue, which cancels quotients."""
    token = asker.set(None)  # the arithmetic of a proof asks nothing
    try:
        return at(size, _Substitution(residues))
    finally:
        asker.reset(token)


def decided(relation: str, difference: Any) -> bool | None:
    """Return whether ``0 == difference`` or ``0 <= difference`` in all calls; None if that depends on the sizes."""
    if always("<=", 0, difference):
        if relation == "<=":
            return True
        return True if always("<=", difference, 0) else False if always("<=", 1, difference) else None
    return False if always("<=", difference, -1) else None


def residue_of(difference: Any) -> tuple[Dimension, Residue] | None:
    """Return the residue that ``difference == 0`` gives a dimension, or None if it says something else.

    Example: ``n - 4*(n // 4) - 1`` gives n the remainder 1 by 4.
    """
    quotients = [(m[0][0], c) for m, c in terms(difference) if len(m) == 1 and isinstance(m[0][0], Quotient)]
    if len(quotients) != 1:
        return None
    ((atom, coefficient),) = quotients
    operand, divisor = terms_of(atom.operand), atom.divisor
    if is_size(divisor) or len(operand) != 1 or coefficient % divisor:
        return None
    ((monomial, factor),) = operand
    if factor != 1 or len(monomial) != 1 or monomial[0][1] != 1 or not isinstance(monomial[0][0], Dimension):
        return None
    scale = coefficient // -divisor
    rest = difference - scale * (atom.operand - atom.operand // divisor * divisor)
    if is_size(rest) or rest % scale or not 0 <= -rest // scale < divisor:
        return None
    return monomial[0][0], Residue(divisor, -rest // scale)


def residues_that_decide(
    relation: str, difference: Any, answer: bool, sizes: Mapping[Dimension, int] | None, known: Residues
) -> Residues | None:
    """Return residues of few dimensions under which a comparison of ``difference`` with 0 has this answer in all
    calls.

    The residues are those of ``sizes`` (None: of the hints) and include ``known`` ones. None if there are none, or if
    the answer depends on the magnitude of sizes rather than on remainders.
    """
    if relation == "<=" and trend(difference):
        return None
    moduli = _moduli(terms(difference))
    for chosen in _subsets([d for d, modulus in moduli.items() if modulus > 1]):
        residues = dict(known)
        for dimension in chosen:
            modulus = math.lcm(moduli[dimension], known[dimension].modulus if dimension in known else 1)
            residues[dimension] = Residue.of(dimension.hint if sizes is None else sizes[dimension], modulus)
        if max(r.modulus for r in residues.values()) > LARGEST_MODULUS:
            continue
        if decided(relation, under(residues, difference)) is answer:
            return residues
    return None


def _subsets(dimensions: list[Dimension]) -> Iterator[tuple[Dimension, ...]]:
    """Yield all subsets but the empty one, the smallest first."""
    for count in range(1, len(dimensions) + 1):
        yield from itertools.combinations(dimensions, count)


@lru_cache(maxsize=REMEMBERED)
def _moduli(summed: Terms) -> dict[Dimension, int]:
    """Return a modulus for each dimension: where its remainder is a number, so are those of quotients of it."""
    moduli = dict.fromkeys(dimensions_of(summed), 1)
    for atom in {a for monomial, _ in summed for a, _ in monomial if not isinstance(a, Dimension)}:
        divisor = atom.divisor if isinstance(atom, Quotient) and not is_size(atom.divisor) else 1
        for dimension, modulus in _moduli(terms_of(atom.operand)).items():
            moduli[dimension] = math.lcm(moduli[dimension], modulus * divisor)
    return moduli
