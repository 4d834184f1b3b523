"""LLVM text of the function that checks whether blocks of memory have changed since its previous call.

It keeps two sums of each block: NH, the universal hash of UMAC (Black, Halevi, Krawczyk, Krovetz, Rogaway 1999), with
two independent keys. NH of 32-bit words m under a key k of equal length is the sum of (m[2i] + k[2i]) * (m[2i+1] +
k[2i+1]), with the sums in parentheses modulo 2**32, all else modulo 2**64. For any two different blocks of one length,
the chance over the keys of equal sums is at most 2**-32; for both sums together 2**-64. So a write is missed with at
most that chance, whether it changes one word or all, and no pattern of writes does better: negation, doubling, exchange
of elements. The keys are random numbers of the process.
"""

from __future__ import annotations

from graphc.codegen.machine.target import Target

BLOCK = 4096
"""Bytes of a block, and of each of the two keys."""
COMPARE = "graphc_compare"
"""``void graphc_compare(ptr table)``. The table holds {number of spans, total blocks, address of the keys, address of
the spans, 1 once a block has differed}. Each span is {address, bytes, address of its sums (two i64 for each block),
blocks of the spans before it, 1 once a block has differed}. New sums overwrite the old ones."""
UNCHANGED = "graphc_unchanged"
"""``i1 graphc_unchanged(ptr table)``: whether no block has changed since. It writes nothing, and runs in one thread."""
CHANGED, FLAG, SPAN_WORDS = 4, 4, 5
"""Indices of words in the table and in a span, and the words of a span."""
_WORK = "graphc_compare_part"
_SHARED_FROM = 256
"""Blocks from which threads share the work."""

_TEXT = """\
target triple = "{triple}"
@graphc_threads = external global {{ ptr, i64, i64 }}
declare i64 @llvm.vector.reduce.add.v8i64(<8 x i64>)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

; What 64 bytes add to a sum.
define internal <8 x i64> @product(<8 x i64> %words, ptr %key, i64 %at) alwaysinline nounwind {{
  %p = getelementptr i8, ptr %key, i64 %at
  %k = load <16 x i32>, ptr %p, align 8
  %m = bitcast <8 x i64> %words to <16 x i32>
  %s = add <16 x i32> %m, %k
  %both = bitcast <16 x i32> %s to <8 x i64>
  %low = and <8 x i64> %both, splat (i64 4294967295)
  %high = lshr <8 x i64> %both, splat (i64 32)
  %found = mul <8 x i64> %low, %high
  ret <8 x i64> %found
}}

; The sums of a block of at most {block} bytes.
define internal {{ i64, i64 }} @sums(ptr %data, i64 %bytes, ptr %key) nounwind noinline {{
entry:
  %last = alloca <8 x i64>, align 64
  %other = getelementptr i8, ptr %key, i64 {block}
  %whole = and i64 %bytes, -64
  %some = icmp ne i64 %whole, 0
  br i1 %some, label %loop, label %rest
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %a = phi <8 x i64> [ zeroinitializer, %entry ], [ %a1, %loop ]
  %b = phi <8 x i64> [ zeroinitializer, %entry ], [ %b1, %loop ]
  %from = getelementptr i8, ptr %data, i64 %i
  %words = load <8 x i64>, ptr %from, align 1
  %pa = call <8 x i64> @product(<8 x i64> %words, ptr %key, i64 %i)
  %pb = call <8 x i64> @product(<8 x i64> %words, ptr %other, i64 %i)
  %a1 = add <8 x i64> %a, %pa
  %b1 = add <8 x i64> %b, %pb
  %next = add i64 %i, 64
  %more = icmp ult i64 %next, %whole
  br i1 %more, label %loop, label %rest
rest:
  %a2 = phi <8 x i64> [ zeroinitializer, %entry ], [ %a1, %loop ]
  %b2 = phi <8 x i64> [ zeroinitializer, %entry ], [ %b1, %loop ]
  %left = sub i64 %bytes, %whole
  %ends = icmp ne i64 %left, 0
  br i1 %ends, label %tail, label %done
tail:
  call void @llvm.memset.p0.i64(ptr %last, i8 0, i64 64, i1 false)
  %end = getelementptr i8, ptr %data, i64 %whole
  call void @llvm.memcpy.p0.p0.i64(ptr %last, ptr %end, i64 %left, i1 false)
  %lw = load <8 x i64>, ptr %last, align 64
  %la = call <8 x i64> @product(<8 x i64> %lw, ptr %key, i64 %whole)
  %lb = call <8 x i64> @product(<8 x i64> %lw, ptr %other, i64 %whole)
  %a3 = add <8 x i64> %a2, %la
  %b3 = add <8 x i64> %b2, %lb
  br label %done
done:
  %a4 = phi <8 x i64> [ %a2, %rest ], [ %a3, %tail ]
  %b4 = phi <8 x i64> [ %b2, %rest ], [ %b3, %tail ]
  %sa = call i64 @llvm.vector.reduce.add.v8i64(<8 x i64> %a4)
  %sb = call i64 @llvm.vector.reduce.add.v8i64(<8 x i64> %b4)
  %first = insertvalue {{ i64, i64 }} undef, i64 %sa, 0
  %both = insertvalue {{ i64, i64 }} %first, i64 %sb, 1
  ret {{ i64, i64 }} %both
}}

; Whether the sums of a block are others than those at %sums, to which they are written where they are to %keep.
define internal i1 @differs(ptr %data, i64 %bytes, ptr %key, ptr %sums, i1 %keep) nounwind alwaysinline {{
entry:
  %found = call {{ i64, i64 }} @sums(ptr %data, i64 %bytes, ptr %key)
  %sa = extractvalue {{ i64, i64 }} %found, 0
  %sb = extractvalue {{ i64, i64 }} %found, 1
  %second = getelementptr i8, ptr %sums, i64 8
  %oa = load i64, ptr %sums, align 8
  %ob = load i64, ptr %second, align 8
  %da = xor i64 %sa, %oa
  %db = xor i64 %sb, %ob
  %d = or i64 %da, %db
  %other = icmp ne i64 %d, 0
  br i1 %keep, label %write, label %done
write:
  store i64 %sa, ptr %sums, align 8
  store i64 %sb, ptr %second, align 8
  br label %done
done:
  ret i1 %other
}}

; One of %chunks equal parts of the blocks.
define internal void @{work}(ptr %table, i64 %chunk, i64 %chunks, ptr %scratch, ptr %barrier) nounwind {{
entry:
  %count = load i64, ptr %table, align 8
  %pall = getelementptr i8, ptr %table, i64 8
  %all = load i64, ptr %pall, align 8
  %pkey = getelementptr i8, ptr %table, i64 16
  %key = load ptr, ptr %pkey, align 8
  %pspans = getelementptr i8, ptr %table, i64 24
  %spans = load ptr, ptr %pspans, align 8
  %pchanged = getelementptr i8, ptr %table, i64 {changed}
  %to = add i64 %chunk, 1
  %m0 = mul i64 %chunk, %all
  %m1 = mul i64 %to, %all
  %begin = udiv i64 %m0, %chunks
  %stop = udiv i64 %m1, %chunks
  br label %span
span:
  %s = phi i64 [ 0, %entry ], [ %s1, %following ]
  %have = icmp ult i64 %s, %count
  br i1 %have, label %look, label %out
look:
  %offset = mul i64 %s, {span}
  %p = getelementptr i8, ptr %spans, i64 %offset
  %data = load ptr, ptr %p, align 8
  %pbytes = getelementptr i8, ptr %p, i64 8
  %bytes = load i64, ptr %pbytes, align 8
  %psums = getelementptr i8, ptr %p, i64 16
  %sums = load ptr, ptr %psums, align 8
  %pfirst = getelementptr i8, ptr %p, i64 24
  %first = load i64, ptr %pfirst, align 8
  %pflag = getelementptr i8, ptr %p, i64 {flag}
  %rounded = add i64 %bytes, {less}
  %blocks = udiv i64 %rounded, {block}
  %after = add i64 %first, %blocks
  %lo = call i64 @llvm.umax.i64(i64 %begin, i64 %first)
  %hi = call i64 @llvm.umin.i64(i64 %stop, i64 %after)
  %go = icmp ult i64 %lo, %hi
  br i1 %go, label %block, label %following
block:
  %n = phi i64 [ %lo, %look ], [ %n1, %advance ]
  %k = sub i64 %n, %first
  %at = mul i64 %k, {block}
  %where = getelementptr i8, ptr %data, i64 %at
  %remaining = sub i64 %bytes, %at
  %size = call i64 @llvm.umin.i64(i64 %remaining, i64 {block})
  %sat = mul i64 %k, 16
  %slot = getelementptr i8, ptr %sums, i64 %sat
  %new = call i1 @differs(ptr %where, i64 %size, ptr %key, ptr %slot, i1 true)
  br i1 %new, label %mark, label %advance
mark:
  store atomic i64 1, ptr %pflag monotonic, align 8
  store atomic i64 1, ptr %pchanged monotonic, align 8
  br label %advance
advance:
  %n1 = add i64 %n, 1
  %again = icmp ult i64 %n1, %hi
  br i1 %again, label %block, label %following
following:
  %s1 = add i64 %s, 1
  br label %span
out:
  ret void
}}

define i1 @{unchanged}(ptr %table) nounwind {{
entry:
  %count = load i64, ptr %table, align 8
  %pkey = getelementptr i8, ptr %table, i64 16
  %key = load ptr, ptr %pkey, align 8
  %pspans = getelementptr i8, ptr %table, i64 24
  %spans = load ptr, ptr %pspans, align 8
  br label %span
span:
  %s = phi i64 [ 0, %entry ], [ %s1, %following ]
  %have = icmp ult i64 %s, %count
  br i1 %have, label %look, label %out
look:
  %offset = mul i64 %s, {span}
  %p = getelementptr i8, ptr %spans, i64 %offset
  %data = load ptr, ptr %p, align 8
  %pbytes = getelementptr i8, ptr %p, i64 8
  %bytes = load i64, ptr %pbytes, align 8
  %psums = getelementptr i8, ptr %p, i64 16
  %sums = load ptr, ptr %psums, align 8
  br label %block
block:
  %at = phi i64 [ 0, %look ], [ %at1, %advance ]
  %slot = phi ptr [ %sums, %look ], [ %slot1, %advance ]
  %go = icmp ult i64 %at, %bytes
  br i1 %go, label %read, label %following
read:
  %where = getelementptr i8, ptr %data, i64 %at
  %remaining = sub i64 %bytes, %at
  %size = call i64 @llvm.umin.i64(i64 %remaining, i64 {block})
  %new = call i1 @differs(ptr %where, i64 %size, ptr %key, ptr %slot, i1 false)
  br i1 %new, label %changed, label %advance
advance:
  %at1 = add i64 %at, {block}
  %slot1 = getelementptr i8, ptr %slot, i64 16
  br label %block
following:
  %s1 = add i64 %s, 1
  br label %span
out:
  ret i1 true
changed:
  ret i1 false
}}

define void @{compare}(ptr %table) nounwind {{
entry:
  %pall = getelementptr i8, ptr %table, i64 8
  %all = load i64, ptr %pall, align 8
  %pcount = getelementptr i8, ptr @graphc_threads, i64 8
  %count = load atomic i64, ptr %pcount monotonic, align 8
  %many = icmp ugt i64 %count, 1
  %much = icmp uge i64 %all, {shared}
  %share = and i1 %many, %much
  br i1 %share, label %together, label %alone
alone:
  call void @{work}(ptr %table, i64 0, i64 1, ptr null, ptr null)
  ret void
together:
  %pspin = getelementptr i8, ptr @graphc_threads, i64 16
  %spin = load atomic i64, ptr %pspin monotonic, align 8
  %run = load atomic ptr, ptr @graphc_threads acquire, align 8
  %used = call i64 %run(ptr @{work}, ptr %table, i64 %count, i64 %spin, i64 0)
  ret void
}}
"""


def emit_compare(target: Target) -> str:
    """Return the LLVM text of COMPARE, which needs the symbol of graphc's threads."""
    return _TEXT.format(
        triple=target.triple,
        block=BLOCK,
        less=BLOCK - 1,
        span=8 * SPAN_WORDS,
        flag=8 * FLAG,
        changed=8 * CHANGED,
        work=_WORK,
        compare=COMPARE,
        unchanged=UNCHANGED,
        shared=_SHARED_FROM,
    )
