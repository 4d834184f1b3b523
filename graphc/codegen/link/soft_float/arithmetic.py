"""Sums, products, quotients, roots, multiply-adds and comparisons of floats in integers."""

from __future__ import annotations

from graphc.codegen.link.soft_float.blocks import (
    BY_MAGNITUDE,
    COUNT,
    EXACT_OR_NAN,
    FACTORS,
    OPERANDS,
    ROUND,
    SPECIAL,
    WHOLE_PRODUCT,
    SoftFormat,
    any_number,
    function,
    shifted,
)

_SUM = (
    """\
  %bx = bitcast {kind} %x to {t}
  %of_y = bitcast {kind} %y to {t}
  %by = xor {t} %of_y, {flip}
  %ax = and {t} %bx, {magnitude}
  %ay = and {t} %by, {magnitude}
"""
    + BY_MAGNITUDE
    + """\
  %of_a = select i1 %swaps, {t} %by, {t} %bx
  %sign = and {t} %of_a, {sign_bit}
  %signs = xor {t} %bx, %by
  %differ = icmp slt {t} %signs, 0
  %endless = icmp uge {t} %a, {infinity}
  br i1 %endless, label %special, label %finite
special:
  %no_number = icmp ugt {t} %a, {infinity}
  %equal = icmp eq {t} %a, %b
  %opposite = and i1 %equal, %differ
  %invalid = or i1 %no_number, %opposite
"""
    + SPECIAL
    + """\
finite:
  %fa = lshr {t} %a, {mantissa}
  %fb = lshr {t} %b, {mantissa}
  %la = and {t} %a, {fraction}
  %lb = and {t} %b, {fraction}
  %wa = or {t} %la, {implicit}
  %wb = or {t} %lb, {implicit}
  %smalla = icmp eq {t} %fa, 0
  %smallb = icmp eq {t} %fb, 0
  %ua = select i1 %smalla, {t} %la, {t} %wa
  %ub = select i1 %smallb, {t} %lb, {t} %wb
  %ea = select i1 %smalla, {t} 1, {t} %fa
  %eb = select i1 %smallb, {t} 1, {t} %fb
  %ma = shl {t} %ua, {guard}
  %mb0 = shl {t} %ub, {guard}
  %distance = sub {t} %ea, %eb
"""
    + shifted("mb", "%mb0", "%distance")
    + """\
  br i1 %differ, label %subtract, label %add
add:
  ; A sum may take the highest bit, and is halved then.
  %sum = add {t} %ma, %mb
  %carries = lshr {t} %sum, {last}
  %out = and {t} %sum, %carries
  %half = lshr {t} %sum, %carries
  %m.sum = or {t} %half, %out
  %e.sum = add {t} %ea, %carries
  br label %check
subtract:
  %difference = sub {t} %ma, %mb
  br label %check
check:
  %m0 = phi {t} [ %m.sum, %add ], [ %difference, %subtract ]
  %e0 = phi {t} [ %e.sum, %add ], [ %ea, %subtract ]
  %in_place = icmp uge {t} %m0, {leading}
  br i1 %in_place, label %round, label %low
low:
  %zero = icmp eq {t} %m0, 0
  br i1 %zero, label %nothing, label %normalize
nothing:
  ; Equal numbers of other signs are +0, but -0 and -0 are -0.
  %of_zero = select i1 %differ, {t} 0, {t} %sign
  %zero.r = bitcast {t} %of_zero to {kind}
  ret {kind} %zero.r
normalize:
  %zeros = call {t} @llvm.ctlz.{t}({t} %m0, i1 true)
  %up = sub {t} %zeros, 1
  %moved = shl {t} %m0, %up
  %lower = sub {t} %e0, %up
  br label %round
round:
  %m = phi {t} [ %m0, %check ], [ %moved, %normalize ]
  %e = phi {t} [ %e0, %check ], [ %lower, %normalize ]
"""
    + ROUND
)
_PRODUCT = (
    OPERANDS
    + FACTORS
    + WHOLE_PRODUCT
    + """\
  %any = icmp ne {t} %pl, 0
  %sticky = zext i1 %any to {t}
  %short = icmp ult {t} %ph, {leading}
  %fewer = zext i1 %short to {t}
  %moved = shl {t} %ph, %fewer
  %e = sub {t} %ep, %fewer
  %m = or {t} %moved, %sticky
  br label %round
special:
"""
    + BY_MAGNITUDE
    + """\
  %no_number = icmp ugt {t} %a, {infinity}
  %endless = icmp eq {t} %a, {infinity}
  %zero = icmp eq {t} %b, 0
  %of_zero = and i1 %endless, %zero
  %invalid = or i1 %no_number, %of_zero
"""
    + SPECIAL
    + "round:\n"
    + ROUND
)
_QUOTIENT = (
    OPERANDS
    + FACTORS
    + """\
  %distance = sub {t} %ex, %ey
  %less = icmp ult {t} %mx, %my
  %fewer = zext i1 %less to {t}
  %dividend = shl {t} %mx, %fewer
  %e0 = add {t} %distance, {bias}
  %e = sub {t} %e0, %fewer
  ; The quotient begins with 1. Each step divides as many further bits as fit beside the mantissa.
  %rest.0 = sub {t} %dividend, %my
{steps}
  %any = icmp ne {t} %rest.{count}, 0
  %sticky = zext i1 %any to {t}
  %placed = shl {t} %quotient.{count}, {unused}
  %m = or {t} %placed, %sticky
  br label %round
special:
  %nox = icmp ugt {t} %ax, {infinity}
  %noy = icmp ugt {t} %ay, {infinity}
  %alike = icmp eq {t} %ax, %ay
  %no_number = or i1 %nox, %noy
  %invalid = or i1 %no_number, %alike
  %endx = icmp eq {t} %ax, {infinity}
  %zeroy = icmp eq {t} %ay, 0
  %endless = or i1 %endx, %zeroy
"""
    + SPECIAL
    + "round:\n"
    + ROUND
)
_STEP = """\
  %shifted.{i} = shl {t} %rest.{i}, {spare}
  %digit.{i} = udiv {t} %shifted.{i}, %my
  %times.{i} = mul {t} %digit.{i}, %my
  %rest.{next} = sub {t} %shifted.{i}, %times.{i}
  %before.{i} = shl {t} {quotient}, {spare}
  %quotient.{next} = or {t} %before.{i}, %digit.{i}"""
_ROOT = (
    """\
  %b = bitcast {kind} %x to {t}
  %ax = and {t} %b, {magnitude}
  %below = sub {t} %b, 1
  %usual = icmp ult {t} %below, {below_infinity}
  br i1 %usual, label %finite, label %special
special:
  %zero = icmp eq {t} %ax, 0
  %infinite = icmp eq {t} %b, {infinity}
  %same = or i1 %zero, %infinite
  %special.bits = select i1 %same, {t} %b, {t} {nan}
  %special.r = bitcast {t} %special.bits to {kind}
  ret {kind} %special.r
finite:
"""
    + any_number("x")
    + """\
  ; The exponent of x becomes even. Each step finds a bit of the root: twice the root so far and the bit is what the
  ; rest must hold, which is doubled after each step.
  %unbiased = sub {t} %gx, {bias}
  %odd = and {t} %unbiased, 1
  %radicand = shl {t} %nx, %odd
  %halved = ashr {t} %unbiased, 1
  %e = add {t} %halved, {bias}
  %first = shl {t} %radicand, 1
  br label %step
step:
  %bit = phi {t} [ {first_bit}, %finite ], [ %next_bit, %step ]
  %rest = phi {t} [ %first, %finite ], [ %doubled, %step ]
  %twice = phi {t} [ 0, %finite ], [ %twice.next, %step ]
  %root = phi {t} [ 0, %finite ], [ %root.next, %step ]
  %needed = add {t} %twice, %bit
  %fits = icmp ule {t} %needed, %rest
  %two_bits = shl {t} %bit, 1
  %twice.more = add {t} %twice, %two_bits
  %root.more = add {t} %root, %bit
  %rest.less = sub {t} %rest, %needed
  %twice.next = select i1 %fits, {t} %twice.more, {t} %twice
  %root.next = select i1 %fits, {t} %root.more, {t} %root
  %rest.next = select i1 %fits, {t} %rest.less, {t} %rest
  %doubled = shl {t} %rest.next, 1
  %next_bit = lshr {t} %bit, 1
  %done = icmp eq {t} %next_bit, 0
  br i1 %done, label %found, label %step
found:
  %any = icmp ne {t} %doubled, 0
  %sticky = zext i1 %any to {t}
  %placed = shl {t} %root.next, {root_place}
  %m = or {t} %placed, %sticky
  %sign = and {t} %b, {sign_bit}
  br label %round
round:
"""
    + ROUND
)
_MULTIPLY_ADD = (
    OPERANDS
    + """\
  %bz = bitcast {kind} %z to {t}
  %az = and {t} %bz, {magnitude}
"""
    + FACTORS
    + WHOLE_PRODUCT
    + """\
  %endz = icmp uge {t} %az, {infinity}
  br i1 %endz, label %term_alone, label %align
term_alone:
  %no_term = icmp ugt {t} %az, {infinity}
  %term.bits = select i1 %no_term, {t} {nan}, {t} %bz
  %term.r = bitcast {t} %term.bits to {kind}
  ret {kind} %term.r
align:
  ; The term has its leading bit at the second highest place of the upper of two words; above is room for a sum.
  %fz = lshr {t} %az, {mantissa}
  %lz = and {t} %az, {fraction}
  %withz = or {t} %lz, {implicit}
  %smallz = icmp eq {t} %fz, 0
  %mz = select i1 %smallz, {t} %lz, {t} %withz
  %ez = select i1 %smallz, {t} 1, {t} %fz
  %zh = shl {t} %mz, {guard}
  %d = sub {t} %ep, %ez
  %lower = icmp slt {t} %d, 0
  br i1 %lower, label %lower_product, label %lower_term
lower_term:
  %near = icmp ult {t} %d, {bits}
  br i1 %near, label %term_near, label %term_far
term_near:
  ; The guard bits of the term are 0, and go to the lower word with others: none is lost.
  %zh.n = lshr {t} %zh, %d
  %back = sub {t} {last}, %d
  %zh.2 = shl {t} %zh, 1
  %zl.n = shl {t} %zh.2, %back
  br label %combine
term_far:
  %word_d = sub {t} %d, {bits}
"""
    + shifted("zl.f", "%zh", "%word_d")
    + """\
  br label %combine
lower_product:
  %by_p = sub {t} 0, %d
  %near_p = icmp ult {t} %by_p, {bits}
  br i1 %near_p, label %product_near, label %product_far
product_near:
  %back_p = sub {t} {last}, %by_p
  %ph.n = lshr {t} %ph, %by_p
  %ph.2 = shl {t} %ph, 1
  %into = shl {t} %ph.2, %back_p
  %pl.s = lshr {t} %pl, %by_p
  %pl.2 = shl {t} %pl, 1
  %gone_p = shl {t} %pl.2, %back_p
  %lost_p = icmp ne {t} %gone_p, 0
  %sticky_p = zext i1 %lost_p to {t}
  %both_p = or {t} %into, %pl.s
  %pl.n = or {t} %both_p, %sticky_p
  br label %combine
product_far:
  %word_p = sub {t} %by_p, {bits}
"""
    + shifted("ph.f", "%ph", "%word_p")
    + """\
  %low_p = icmp ne {t} %pl, 0
  %sticky_f = zext i1 %low_p to {t}
  %pl.f = or {t} %ph.f, %sticky_f
  br label %combine
combine:
  %vh = phi {t} [ %ph, %term_near ], [ %ph, %term_far ], [ %ph.n, %product_near ], [ 0, %product_far ]
  %vl = phi {t} [ %pl, %term_near ], [ %pl, %term_far ], [ %pl.n, %product_near ], [ %pl.f, %product_far ]
  %th = phi {t} [ %zh.n, %term_near ], [ 0, %term_far ], [ %zh, %product_near ], [ %zh, %product_far ]
  %tl = phi {t} [ %zl.n, %term_near ], [ %zl.f, %term_far ], [ 0, %product_near ], [ 0, %product_far ]
  %e0 = phi {t} [ %ep, %term_near ], [ %ep, %term_far ], [ %ez, %product_near ], [ %ez, %product_far ]
  %with_z = xor {t} %sign, %bz
  %differ = icmp slt {t} %with_z, 0
  br i1 %differ, label %subtract, label %add
add:
  %sl = add {t} %vl, %tl
  %carry0 = icmp ult {t} %sl, %vl
  %carry = zext i1 %carry0 to {t}
  %sh0 = add {t} %vh, %th
  %sh = add {t} %sh0, %carry
  br label %check
subtract:
  %dl = sub {t} %vl, %tl
  %borrow0 = icmp ult {t} %vl, %tl
  %borrow = zext i1 %borrow0 to {t}
  %dh0 = sub {t} %vh, %th
  %dh = sub {t} %dh0, %borrow
  %negative = icmp slt {t} %dh, 0
  br i1 %negative, label %turn, label %check
turn:
  %nl = sub {t} 0, %dl
  %some = icmp ne {t} %dl, 0
  %less1 = sext i1 %some to {t}
  %nh0 = sub {t} 0, %dh
  %nh = add {t} %nh0, %less1
  %sign.z = and {t} %bz, {sign_bit}
  br label %check
check:
  %high = phi {t} [ %sh, %add ], [ %dh, %subtract ], [ %nh, %turn ]
  %low = phi {t} [ %sl, %add ], [ %dl, %subtract ], [ %nl, %turn ]
  %sign.0 = phi {t} [ %sign, %add ], [ %sign, %subtract ], [ %sign.z, %turn ]
  %in_place = icmp uge {t} %high, {leading}
  br i1 %in_place, label %halve, label %double
halve:
  ; A sum may take the highest bit.
  %carries = lshr {t} %high, {last}
  %out = and {t} %high, %carries
  %high.h = lshr {t} %high, %carries
  %low.h = or {t} %low, %out
  %e.h = add {t} %e0, %carries
  br label %finish
double:
  ; One place is missing most often.
  %low.top = lshr {t} %low, {last}
  %high.2 = shl {t} %high, 1
  %high.d = or {t} %high.2, %low.top
  %low.d = shl {t} %low, 1
  %e.d = sub {t} %e0, 1
  %now = icmp uge {t} %high.d, {leading}
  br i1 %now, label %finish, label %further
further:
  %upper_some = icmp ne {t} %high.d, 0
  br i1 %upper_some, label %some_places, label %word_up
word_up:
  %nothing = icmp eq {t} %low.d, 0
  br i1 %nothing, label %gone, label %lift_word
gone:
  ret {kind} 0.0
lift_word:
  %zeros.w = call {t} @llvm.ctlz.{t}({t} %low.d, i1 true)
  %high.w0 = shl {t} %low.d, %zeros.w
  %high.w = lshr {t} %high.w0, 1
  %low.w = and {t} %high.w0, 1
  %places.w = add {t} %zeros.w, {last}
  %e.w = sub {t} %e.d, %places.w
  br label %finish
some_places:
  %zeros.s = call {t} @llvm.ctlz.{t}({t} %high.d, i1 true)
  %places.s = sub {t} %zeros.s, 1
  %back.s = sub {t} {bits}, %places.s
  %high.s0 = shl {t} %high.d, %places.s
  %from_low = lshr {t} %low.d, %back.s
  %high.s = or {t} %high.s0, %from_low
  %low.s = shl {t} %low.d, %places.s
  %e.s = sub {t} %e.d, %places.s
  br label %finish
finish:
  %top = phi {t} [ %high.h, %halve ], [ %high.d, %double ], [ %high.w, %lift_word ], [ %high.s, %some_places ]
  %rest = phi {t} [ %low.h, %halve ], [ %low.d, %double ], [ %low.w, %lift_word ], [ %low.s, %some_places ]
  %e = phi {t} [ %e.h, %halve ], [ %e.d, %double ], [ %e.w, %lift_word ], [ %e.s, %some_places ]
  %any = icmp ne {t} %rest, 0
  %sticky = zext i1 %any to {t}
  %m = or {t} %top, %sticky
  br label %round
special:
  ; A product that is 0, infinite or no number, and a term of any kind.
"""
    + BY_MAGNITUDE
    + """\
  %no_factor = icmp ugt {t} %a, {infinity}
  %no_z = icmp ugt {t} %az, {infinity}
  %endless = icmp eq {t} %a, {infinity}
  %endless_z = icmp eq {t} %az, {infinity}
  %zero = icmp eq {t} %b, 0
  %zero_z = icmp eq {t} %az, 0
  %signs_z = xor {t} %sign, %bz
  %opposite = icmp slt {t} %signs_z, 0
  %of_zero = and i1 %endless, %zero
  %ends = and i1 %endless, %endless_z
  %difference = and i1 %ends, %opposite
  %invalid0 = or i1 %no_factor, %no_z
  %invalid1 = or i1 %of_zero, %difference
  %invalid = or i1 %invalid0, %invalid1
  %infinite = or {t} %sign, {infinity}
  %zeros = and {t} %sign, %bz
  %of_term = select i1 %zero_z, {t} %zeros, {t} %bz
  %exact = select i1 %endless, {t} %infinite, {t} %of_term
"""
    + EXACT_OR_NAN
    + "round:\n"
    + ROUND.replace("%sign,", "%sign.0,").replace("%sign\n", "%sign.0\n")
)
_COMPARE = """\
  %bx = bitcast {kind} %x to {t}
  %by = bitcast {kind} %y to {t}
  %ax = and {t} %bx, {magnitude}
  %ay = and {t} %by, {magnitude}
  %nox = icmp ugt {t} %ax, {infinity}
  %noy = icmp ugt {t} %ay, {infinity}
  %unordered = or i1 %nox, %noy
  br i1 %unordered, label %none, label %compare
none:
  ret i32 {none}
compare:
  ; Integers in the order of the numbers: those of -0 and 0 are equal.
  %negx = ashr {t} %bx, {last}
  %negy = ashr {t} %by, {last}
  %flipx = xor {t} %ax, %negx
  %flipy = xor {t} %ay, %negy
  %kx = sub {t} %flipx, %negx
  %ky = sub {t} %flipy, %negy
  %more = icmp sgt {t} %kx, %ky
  %less = icmp slt {t} %kx, %ky
  %above = zext i1 %more to i32
  %below = sext i1 %less to i32
  %order = or i32 %above, %below
  ret i32 {ordered}
}}
"""


def arithmetic(f: SoftFormat) -> dict[str, str]:
    """Return the text of each function for a format, by its name."""
    names = dict(f.names)
    kind, count = f.kind, COUNT.format(**names)
    steps = -(-(f.mantissa + 1) // (f.guard + 1))
    division = [_STEP.format(i=i, next=i + 1, quotient=f"%quotient.{i}" if i else "1", **names) for i in range(steps)]
    names |= {"steps": "\n".join(division), "count": steps, "unused": f.bits - 2 - steps * (f.guard + 1)}
    names |= {"first_bit": 2 << f.mantissa, "root_place": f.guard - 1}
    two, three = f"{kind} %x, {kind} %y", f"{kind} %x, {kind} %y, {kind} %z"
    texts = dict[str, str]()
    for name, flip in (("add", 0), ("sub", names["sign_bit"])):
        texts |= function(f"__{name}{f.letter}f3", kind, two, _SUM.format(flip=flip, **names), count)
    for name, arguments, body in (
        (f"__mul{f.letter}f3", two, _PRODUCT),
        (f"__div{f.letter}f3", two, _QUOTIENT),
        (f"sqrt{f.suffix}", f"{kind} %x", _ROOT),
        (f"fma{f.suffix}", three, _MULTIPLY_ADD),
    ):
        texts |= function(name, kind, arguments, body.format(**names), count)
    for name, none, ordered in (
        *((name, 1, "%order") for name in ("eq", "ne", "lt", "le")),
        *((name, -1, "%order") for name in ("gt", "ge")),
        ("unord", 1, "0"),
    ):
        body = _COMPARE.format(none=none, ordered=ordered, **names)
        texts |= function(f"__{name}{f.letter}f2", "i32", two, body)
    return texts
