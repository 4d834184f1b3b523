"""Terms of sizes: one order, one object for equal atoms, arithmetic as of numbers."""

import copy
import pickle
import random

import pytest

from graphc.base.sizes import size_terms
from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.base.sizes.size import always, at, bounds
from graphc.base.sizes.size_terms import (
    Dimension,
    Quotient,
    constant,
    expected,
    minus,
    over,
    plus,
    product,
    scaled,
    terms_of,
    times,
    total,
)

N, M = Dim("n", 1, 9, hint=4), Dim("m", 0, 5, hint=2)


def atoms(size):
    return [atom for monomial, _ in terms_of(size) for atom, _ in monomial]


def test_equal_atoms_are_one_object():
    (n,), (m,) = atoms(N), atoms(M)
    assert Dimension("n", 1, 9, 4) is n and Dimension("n", 1, 8, 4) is not n and n != m
    (quotient,) = atoms((N + M) // 3)
    assert Quotient(M + N, 3) is quotient and Quotient(M + N, 2) is not quotient and Quotient(M + N, N) is not quotient
    for atom in (n, quotient):
        assert pickle.loads(pickle.dumps(atom)) is atom and copy.deepcopy(atom) is atom
    assert (n.name, n.low, n.high, n.hint, n.common) == ("n", 1, 9, 4, ())


def test_atoms_that_nobody_uses_are_freed():
    before = len(size_terms._atoms)
    for number in range(50):
        Dimension(f"gone_{number}", 0, 7, 1)
    assert len(size_terms._atoms) <= before + 1


@pytest.mark.parametrize("seed", range(40))
def test_arithmetic_with_terms_is_that_of_numbers(seed):
    generator = random.Random(seed)
    leaves = [N, M, (N + 1) // 2, N * M - 3, generator.randint(-4, 4)]
    a, b = (generator.choice(leaves) * generator.choice(leaves) for _ in "ab")
    k = generator.randint(-3, 3)
    values = {atoms(N)[0]: generator.randint(1, 9), atoms(M)[0]: generator.randint(0, 5)}
    x, y = at(a, values), at(b, values)
    found = {
        plus: (x + y, plus(terms_of(a), terms_of(b))),
        minus: (x - y, minus(terms_of(a), terms_of(b))),
        product: (x * y, product(terms_of(a), terms_of(b))),
        scaled: (x * k, scaled(terms_of(a), k)),
    }
    for wanted, terms in found.values():
        value = 0
        for monomial, coefficient in terms:
            part = coefficient
            for atom, power in monomial:
                part *= (
                    at(atom.operand, values) // atom.divisor if isinstance(atom, Quotient) else values[atom]
                ) ** power
            value += part
        assert value == wanted
        assert terms == total(dict(reversed(terms))) and all(c for _, c in terms)


def test_numbers_have_at_most_one_term():
    assert constant(0) == () and constant(7) == (((), 7),) and terms_of(True) == (((), 1),)
    assert minus(terms_of(N), terms_of(N)) == () and expected(()) == 0


def test_products_of_atoms_and_their_quotients():
    (n,), (m,) = atoms(N), atoms(M)
    assert times(((n, 1),), ((m, 2), (n, 1))) == ((m, 2), (n, 2)) and times((), ((n, 1),)) == ((n, 1),)
    assert over(((m, 2), (n, 2)), ((m, 2), (n, 1))) == ((n, 1),) and over(((n, 1),), ((m, 1),)) is None


def test_expected_values():
    assert expected(terms_of(N * M + N // 3 * 5 - 1)) == 4 * 2 + 5 - 1


def test_what_is_divided_by_an_expected_size_of_zero_is_as_in_calls():
    none = Dim("none", 0, 8, hint=0)
    size = (3 * N + 1) // none
    assert expected(size.terms) == at(size, None) == at(size, {d: d.hint for d in dimensions([size]).values()}) == 13
    assert not always("<=", size, N) and bounds(size) == (0, 28)
    assert at(9 // none, None) == 9 and [at(9 // none, {a: n}) for a in atoms(none) for n in (0, 1, 4)] == [9, 9, 2]
