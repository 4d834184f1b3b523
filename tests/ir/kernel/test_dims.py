"""Kernels and programs with named dimensions: text, proofs for all sizes, and the same with numbers in their place."""

from __future__ import annotations

import random
from contextlib import nullcontext

import numpy as np
import pytest

from graphc.base.dtypes import float32
from graphc.base.errors import ArgumentError, ParseError, VerifyError
from graphc.base.sizes.assumptions import Assumption, holding
from graphc.base.sizes.named_dims import Dim, size_of
from graphc.base.sizes.size import at, is_size
from graphc.base.sizes.size_limits import question_behind
from graphc.base.sizes.size_questions import access_asker
from graphc.ir.kernel.dims import bind, bind_kernel, dims_of_kernel, dims_of_program
from graphc.ir.kernel.index import Axis, Dynamic, Index, as_index, bounds, substitute, unflatten
from graphc.ir.kernel.index_range import stays_within
from graphc.ir.kernel.interpret import run_kernel, run_program
from graphc.ir.kernel.nest import NestBuilder
from graphc.ir.kernel.parse import parse_kernel, parse_program
from graphc.ir.kernel.statements import Bound, Buffer, Kernel
from graphc.ir.kernel.text import print_kernel, print_program
from graphc.ir.kernel.verify import verify_kernel, verify_program

TIME, BATCH = Dim("time", 1, 40, hint=16), Dim("batch", 1, 9, hint=4, common=(1, 8))
BATCH_ATOM, TIME_ATOM = dims_of_kernel(Kernel("k", (Buffer("x", float32, TIME * BATCH, "in"),), ())).values()

PROGRAM = """\
dim batch = 1..9 hint 4 common [1,8]
dim time = 1..40 hint 16
program @f arena (batch*time + 15) // 16 * 64 + 64 {
  input %x: f32[batch,time]
  output %y: f32[batch]
  output %z: f32[batch,time + 2]
  temp %t: f32[batch,time] at 64

  kernel @double(%a: f32[batch*time] in, %b: f32[batch*time] out) {
    for i0 in batch parallel {
      for i1 in (time // 4) parallel {
        for i2 in 4 vector {
          v1: f32 = load %a[time*i0 + 4*i1 + i2]
          v2: f32 = add(v1, v1)
          store %b[time*i0 + 4*i1 + i2] = v2
        }
      }
      for i3 in time - 4*(time // 4) parallel {
        v3: f32 = load %a[time*i0 + i3 + 4*(time // 4)]
        v4: f32 = add(v3, v3)
        store %b[time*i0 + i3 + 4*(time // 4)] = v4
      }
    }
  }

  kernel @mean(%b: f32[batch*time] in, %y: f32[batch] out) {
    for i0 in batch parallel {
      acc acc1: f32 = add f32(0.0)
      for i1 in time reduce {
        v1: f32 = load %b[time*i0 + i1]
        update acc1 with v1
      }
      v2 = read acc1
      v3: i64 = index time
      v4: f32 = cast(v3)
      v5: f32 = div(v2, v4)
      store %y[i0] = v5
    }
  }

  kernel @pad(%b: f32[batch*time] in, %z: f32[batch*(time + 2)] out) {
    for i0 in batch*(time + 2) parallel {
      v1: f32 = load %b[time*(i0 // (time + 2)) + i0 % (time + 2) - 1] if 0 <= i0 % (time + 2) - 1 < time else f32(0.0)
      store %z[i0] = v1
    }
  }

  call @double(%x, %t)
  call @mean(%t, %y)
  call @pad(%t, %z)
}
"""


def test_the_text_reads_back_to_the_same_program():
    program = parse_program(PROGRAM)
    assert parse_program(print_program(program)) == program
    kernel = program.kernel("double")
    text = print_kernel(kernel)
    assert parse_kernel(text) == kernel
    assert text.startswith("dim batch = 1..9 hint 4 common [1,8]\ndim time = 1..40 hint 16\nkernel @double(")
    assert list(dims_of_program(program)) == ["batch", "time"]


def test_a_name_that_is_not_declared_is_no_size():
    with pytest.raises(ParseError, match="other is not declared as a dimension"):
        parse_program(PROGRAM.replace("f32[batch,time + 2]", "f32[batch,other + 2]"))


def test_the_program_is_proven_for_all_sizes():
    verify_program(parse_program(PROGRAM))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("for i1 in time reduce", "for i1 in time + 1 reduce", "index time\\*i0 \\+ i1 lies in 0..batch\\*time"),
        ("0 <= i0 % (time + 2) - 1 < time else", "0 <= i0 % (time + 2) - 1 < time + 1 else", "lies in"),
        ("arena (batch*time + 15) // 16 * 64 + 64", "arena batch*time*4 + 60", "%t ends at"),
        ("temp %t: f32[batch,time] at 64", "temp %t: f32[batch,time] at 4*time", "not aligned"),
        ("output %z: f32[batch,time + 2]", "output %z: f32[batch,time]", "%z is f32\\[batch,time\\]"),
        ("for i1 in time reduce", "for i1 in time - 2 reduce", "axis i1 has extent time - 2"),
    ],
)
def test_what_does_not_hold_for_every_size_is_refused(old, new, message):
    assert old in PROGRAM
    with pytest.raises(VerifyError, match=message):
        verify_program(parse_program(PROGRAM.replace(old, new)))


FIRST_ROWS = """
dim batch = 1..9 hint 4 common [1,8]
dim time = 1..40 hint 16
kernel @first(%y: f32[batch] in, %w: f32[time] out) {
  for i0 in batch parallel {
    v1: f32 = load %y[i0]
    store %w[i0] = v1
  }
}
"""


def test_an_access_that_sizes_decide_is_a_question_and_an_assumption_of_the_trace_answers_it():
    kernel = parse_kernel(FIRST_ROWS)
    with pytest.raises(VerifyError, match="lies in") as refused:
        verify_kernel(kernel)
    assert question_behind(refused.value) is None, "nobody may assume it"
    with holding([], {}, access_asker), pytest.raises(VerifyError) as undecided:
        verify_kernel(kernel)
    assert question_behind(undecided.value) == ("<=", BATCH - 1, TIME - 1)
    sizes = {BATCH_ATOM: BATCH, TIME_ATOM: TIME}
    for answer in (True, False):
        assumption = Assumption("<=", BATCH, TIME, answer, "a line")
        with holding([assumption], sizes, access_asker), nullcontext() if answer else pytest.raises(VerifyError):
            verify_kernel(kernel)


PICKED = """
dim batch = 0..9 hint 4
kernel @picked(%x: f32[batch] in, %i: i64[4] in, %y: f32[4] out) {
  for i0 in 4 parallel {
    v1: i64 = load %i[i0]
    v2: i64 = index batch - 1
    v3: i64 = min(v1, v2)
    v4: f32 = load %x[[v3:0..batch - 1]]
    store %y[i0] = v4
  }
}
"""


def test_that_a_range_has_an_element_is_a_question():
    kernel = parse_kernel(PICKED)
    with pytest.raises(VerifyError, match=r"range 0\.\.batch - 1 is empty") as refused:
        verify_kernel(kernel)
    assert question_behind(refused.value) is None, "nobody may assume it"
    with holding([], {}, access_asker), pytest.raises(VerifyError) as undecided:
        verify_kernel(kernel)
    (batch,) = dims_of_kernel(kernel).values()
    assert question_behind(undecided.value) == ("<=", 0, size_of(batch) - 1)
    with holding([Assumption("<=", 0, size_of(batch) - 1, True)], {batch: size_of(batch)}, access_asker):
        verify_kernel(kernel)


def test_places_in_the_arena_that_meet_at_some_sizes_are_refused():
    text = PROGRAM.replace(
        "  temp %t: f32[batch,time] at 64\n",
        "  temp %t: f32[batch,time] at 64\n  temp %u: f32[batch,time] at PLACE\n",
    ).replace("call @pad(%t, %z)", "call @double(%t, %u)\n  call @pad(%u, %z)")
    text = text.replace("arena (batch*time + 15) // 16 * 64 + 64", "arena (batch*time + 15) // 16 * 128 + 64")
    verify_program(parse_program(text.replace("PLACE", "64 + (batch*time + 15) // 16 * 64")))
    with pytest.raises(VerifyError, match="overlap in the arena"):
        verify_program(parse_program(text.replace("PLACE", "64 * time").replace("* 128 + 64", "* 128 + 9999")))


@pytest.mark.parametrize(("batch", "time"), [(1, 1), (9, 40), (3, 7), (2, 4), (1, 5)])
def test_a_bound_program_computes_what_its_sizes_say(batch, time):
    bound = bind(parse_program(PROGRAM), {"batch": batch, "time": time})
    assert not dims_of_program(bound)
    verify_program(bound)
    x = np.random.default_rng(0).standard_normal((batch, time)).astype(np.float32)
    y, z = run_program(bound, [x])
    np.testing.assert_allclose(y, 2 * x.mean(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(z, np.pad(2 * x, ((0, 0), (1, 1))))


def test_dimensions_are_bound_one_after_the_other():
    program = parse_program(PROGRAM)
    half = bind(program, {"batch": 3})
    verify_program(half)
    assert list(dims_of_program(half)) == ["time"]
    assert bind(half, {"time": 5}) == bind(program, {"time": 5, "batch": 3})


def test_sizes_outside_of_the_range_and_unknown_names_are_refused():
    program = parse_program(PROGRAM)
    with pytest.raises(ArgumentError, match=r"dimension time is 41, outside of 1\.\.40"):
        bind(program, {"batch": 1, "time": 41})
    with pytest.raises(ArgumentError, match="there is no dimension rows"):
        bind_kernel(program.kernel("mean"), {"rows": 1})


TILES = """\
dim n = 1..40 hint 16
dim rows = 1..8 hint 8
program @tiles {
  input %x: f32[n]
  output %y: f32[n]

  kernel @double(%x: f32[rows] in, %y: f32[rows] out) {
    for i0 in rows parallel {
      v1: f32 = load %x[i0]
      v2: f32 = add(v1, v1)
      store %y[i0] = v2
    }
  }

  repeat r0 in (n - 1) // 8 {
    call @double(%x[8*r0], %y[8*r0]) with rows = 8
  }
  call @double(%x[8*((n - 1) // 8)], %y[8*((n - 1) // 8)]) with rows = n - 8*((n - 1) // 8)
}
"""


def test_a_call_says_what_a_dimension_of_its_kernel_is():
    program = parse_program(TILES)
    verify_program(program)
    assert parse_program(print_program(program)) == program
    assert list(dims_of_program(program)) == ["n"]
    assert [str(program.is_whole(c, 0)) for c in program.calls] == ["False", "False"]
    x = np.arange(40, dtype=np.float32)
    for n in (1, 7, 8, 9, 16, 17, 40):
        bound = bind(program, {"n": n})
        verify_program(bound)
        assert not any(dims_of_kernel(k) for k in bound.kernels)
        np.testing.assert_array_equal(run_program(bound, [x[:n]])[0], 2 * x[:n])


def test_a_kernel_for_the_numbers_of_a_call_takes_no_name_that_is_there():
    program = parse_program("""\
dim rows = 1..8 hint 8
program @both {
  input %x: f32[4]
  output %y: f32[4]
  output %z: f32[4]

  kernel @k(%x: f32[rows] in, %y: f32[rows] out) {
    for i0 in rows parallel {
      v1: f32 = load %x[i0]
      store %y[i0] = v1
    }
  }

  kernel @k_4(%x: f32[4] in, %y: f32[4] out) {
    for i0 in 4 parallel {
      v1: f32 = load %x[i0]
      v2: f32 = neg(v1)
      store %y[i0] = v2
    }
  }

  call @k(%x, %y) with rows = 4
  call @k_4(%x, %z)
}
""")
    bound = bind(program, {})
    verify_program(bound)
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run_program(bound, [x]), [x, -x])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (" with rows = 8\n", "\n", "@double: the call does not bind the dimension rows"),
        (" with rows = 8\n", " with rows = 9\n", r"rows is 1\.\.8, not 9"),
        ("with rows = n - 8*((n - 1) // 8)", "with rows = n - 8*(n // 8)", r"rows is 1\.\.8, not -8\*\(n // 8\) \+ n"),
        ("with rows = n - 8*((n - 1) // 8)", "with rows = 8", "%x has n elements, not 8"),
        ("repeat r0 in (n - 1) // 8", "repeat r0 in (n - 17) // 8", "a loop has no iterations"),
    ],
)
def test_what_a_call_says_holds_for_every_size(old: str, new: str, message: str):
    assert old in TILES
    with pytest.raises(VerifyError, match=message):
        verify_program(parse_program(TILES.replace(old, new)))


def test_a_call_names_dimensions_of_its_kernel():
    with pytest.raises(ParseError, match="expected the name of a dimension of the kernel"):
        parse_program(TILES.replace("with rows = 8", "with 8 = rows"))


def test_numbers_computed_from_sizes_are_scalars():
    nest = NestBuilder()
    nest.store_at("y", 0, nest.const(1.0 / (TIME + 1) - 3, float32))
    nest.store_at("y", 1, nest.const(TIME * BATCH, float32))
    kernel = Kernel("k", (Buffer("y", float32, 2, "out"),), nest.body())
    verify_kernel(kernel)
    bound = bind_kernel(kernel, {"time": 6, "batch": 4})
    y = np.zeros(2, np.float32)
    run_kernel(bound, {"y": y})
    np.testing.assert_array_equal(y, np.float32([1.0 / 7 - 3, 24]))


# ---- index arithmetic


def _axes() -> list[Index]:
    extents = [TIME, BATCH, TIME * BATCH, 4, TIME // 3 + 1, 1]
    return [as_index(Axis(f"a{i}", e)) for i, e in enumerate(extents)] + [Index(((Dynamic("d", 0, TIME - 1), 1),))]


def _random_index(generator: random.Random, axes: list[Index], sizes: list, depth: int) -> Index:
    """An expression of axes, made by the same steps whatever the sizes are."""
    if not depth:
        return generator.choice(axes) + generator.choice(sizes)
    a = _random_index(generator, axes, sizes, depth - 1)
    b = _random_index(generator, axes, sizes, depth - 1)
    size = generator.choice(sizes)
    return {"+": a * size + b, "-": a - b, "/": a // size, "%": a % size}[generator.choice("+-/%")]


def _value(index: Index, values: dict) -> int:
    """Evaluate by the definition of each atom."""
    result = at(index.constant, SIZES_AT)
    for atom, coefficient in index.terms:
        if isinstance(atom, Axis | Dynamic):
            x = values[atom.name]
        else:
            x, divisor = _value(atom.operand, values), at(atom.divisor, SIZES_AT)
            x = x // divisor if type(atom).__name__ == "Div" else x % divisor
        result += at(coefficient, SIZES_AT) * x
    return result


SIZES_AT: dict = {}


@pytest.mark.parametrize("seed", range(300))
def test_random_expressions_have_the_values_that_numbers_give_within_their_bounds(seed):
    generator = random.Random(seed)
    time, batch = generator.choice([1, 2, 3, 16, 39, 40]), generator.choice([1, 2, 5, 9])
    SIZES_AT.update({TIME_ATOM: time, BATCH_ATOM: batch})
    sizes = [TIME, BATCH, TIME * BATCH, 3, 2 * TIME + 4, TIME // 3 + 1, 8]
    depth = 1 + seed % 3
    index = _random_index(random.Random(seed), _axes(), sizes, depth)
    places = {}
    for axis in _axes():
        for atom, _ in axis.terms:
            last = at(atom.extent, SIZES_AT) - 1 if isinstance(atom, Axis) else at(atom.high, SIZES_AT)
            places[atom.name] = generator.randint(0, last)
    plain = [substitute(i, lambda a: places[a.name]) for i in _axes()]
    expected = _random_index(random.Random(seed), plain, [at(s, SIZES_AT) for s in sizes], depth).constant
    assert _value(index, places) == expected
    low, high = bounds(index)
    assert at(low, SIZES_AT) <= expected <= at(high, SIZES_AT)


def test_views_of_merged_dimensions_are_simplified():
    row, column = as_index(Axis("r", BATCH)), as_index(Axis("c", TIME))
    merged = TIME * row + column
    assert unflatten(merged, (BATCH, TIME)) == (row, column)
    assert (384 * merged + 5) // 384 == merged
    lane = as_index(Axis("l", BATCH * TIME))
    assert lane % TIME + lane // TIME * TIME == lane
    assert lane // TIME // BATCH == 0 + Index() and is_size(bounds(lane)[1])


def test_guards_prove_what_holds_for_all_sizes():
    row, column = as_index(Axis("r", BATCH)), as_index(Axis("c", TIME))
    padded = TIME * row + column - 2
    inside = Bound(column - 2, 0, TIME)
    assert stays_within(padded, (inside,), TIME * BATCH) is None
    assert stays_within(padded, (), TIME * BATCH) is not None
    assert stays_within(padded, (inside,), TIME * BATCH - 3) is not None
    assert stays_within(column, (Bound(column, 0, TIME // 2),), TIME // 2) is None
    flipped = TIME - 1 - column
    assert stays_within(flipped, (), TIME) is None and stays_within(flipped, (), TIME - 1) is not None


def test_the_upper_digit_of_a_remainder_bounds_it():
    place = as_index(Axis("r", 2 * TIME * BATCH))
    part = (place // TIME) % 2
    whole = place % TIME + part * TIME
    assert whole == place % (2 * TIME) and part == whole // TIME
    assert stays_within(whole, (Bound(part, 0, 1),), TIME) is None
    assert stays_within(whole, (Bound(part, 1, 2),), TIME) is not None


def test_storages_of_an_arena_that_are_rounded_up_are_proven_with_the_gaps_behind_them():
    text = PROGRAM.replace("f32[batch,time] at 64", "f32[batch,time] at 64*((batch + 1) // 2)")
    text = text.replace(
        "arena (batch*time + 15) // 16 * 64 + 64", "arena 192*((batch + 1) // 2) + (batch*time + 15) // 16 * 64 - 128"
    )
    verify_program(parse_program(text))


def test_conditions_on_sizes_alone_are_used():
    row = as_index(Axis("r", BATCH))
    place = 3 * TIME * row + 5
    long_enough = Bound(as_index(0), 0, TIME - 1)
    assert stays_within(place, (long_enough,), 3 * BATCH * TIME) is None
    assert stays_within(place, (), 3 * BATCH * TIME) is not None
    assert stays_within(place + 1, (long_enough,), 3 * BATCH * TIME) is not None


def test_quotients_by_sizes_of_what_is_rounded_down():
    place = as_index(Axis("r", BATCH * TIME // 4)) * 4 + as_index(Axis("l", 4))
    index = place // TIME * TIME + as_index(Axis("c", TIME))
    assert stays_within(index, (), BATCH * TIME) is None
    assert stays_within(index, (), BATCH * TIME - 1) is not None


NUMBER = """dim pos = 0..7 hint 4
program @f {
  input %x: f32[8]
  input %pos: i64[] equals pos
  output %y: f32[]

  kernel @k0(%x: f32[8] in, %y: f32[1] out) {
    a: f32 = load %x[pos]
    store %y[0] = a
  }

  call @k0(%x, %y)
}
"""


def test_an_input_gives_a_dimension_by_its_value():
    program = parse_program(NUMBER)
    verify_program(program)
    assert print_program(program) == NUMBER and list(dims_of_program(program)) == ["pos"]
    x = np.arange(8, dtype=np.float32)
    for pos in (0, 5):
        assert run_program(bind(program, {"pos": pos}), [x, np.array(pos)])[0] == pos
    with pytest.raises(VerifyError, match=r"a size is given by an input of type i64\[\]"):
        verify_program(parse_program(NUMBER.replace("input %pos: i64[]", "input %pos: i32[]")))
