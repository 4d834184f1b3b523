"""Bounds of a shared loop for the chunk of one thread, as LLVM instructions."""

from __future__ import annotations

from typing import Any

from graphc.base.sizes.size import always, is_one
from graphc.codegen.llvm.function import FunctionWriter
from graphc.codegen.schedule.threads.chunks import Chunking, Share
from graphc.ir.kernel.index import Axis


class ShareWriter:
    """Follows the open shared loops, and tracks the grain at which the present iteration starts."""

    PARAMETERS = (("i64", "%chunk"), ("i64", "%chunks"))
    """Parameters of a kernel after its buffers."""

    def __init__(self, function: FunctionWriter, chunking: Chunking):
        self.function = function
        self.shares = chunking.shares
        self.grains = chunking.grains
        self.position: list[tuple[str, Any]] = [("", 0)]
        """Grain at which the innermost open iteration starts: a register (or none) and a size."""
        self.low = self.high = ""

    def start(self) -> None:
        """Compute the chunk's own grains; call it at the start of the function."""
        line, grains = self.function.line, self.function.sizes.value(self.grains)
        lower = line(f"mul nuw i64 %chunk, {grains}")
        upper = line(f"add nuw i64 {lower}, {grains}")
        self.low = line(f"udiv i64 {lower}, %chunks")
        self.high = line(f"udiv i64 {upper}, %chunks")

    def bounds(self, axis: Axis) -> tuple[str, str]:
        """Return the registers with the first iteration of the chunk and the one after its last."""
        share = self.shares[axis]
        base = self._base(share)
        return self._bound(self.low, base, share, axis, share.whole), self._bound(self.high, base, share, axis, True)

    def enter(self, axis: Axis, counter: str) -> None:
        """Enter a loop with this counter; call it inside the loop."""
        share = self.shares[axis]
        if share.whole:
            self.position.append(("", 0))
            return
        base = self._base(share)
        grains = self.function.line(f"mul nuw nsw i64 {counter}, {self.function.sizes.value(share.weight)}")
        self.position.append((self.function.line(f"add nuw nsw i64 {grains}, {base}"), 0))

    def leave(self) -> None:
        """Leave the loop; call it after the loop."""
        self.position.pop()

    def _base(self, share: Share) -> str:
        register, position = self.position[-1]
        offset = self.function.sizes.value(position + share.offset)
        if not register:
            return offset
        return register if offset == "0" else self.function.line(f"add nuw nsw i64 {register}, {offset}")

    def _bound(self, grain: str, base: str, share: Share, axis: Axis, up: bool) -> str:
        """Return the iteration that starts at a grain, within the loop. For a grain inside an iteration, ``up`` selects
        the next one."""
        line, declare, sizes = self.function.line, self.function.declare, self.function.sizes
        inside = grain
        if base != "0":
            declare("llvm.smax.i64", "declare i64 @llvm.smax.i64(i64, i64)")
            inside = line(f"sub nsw i64 {grain}, {base}")
            inside = line(f"call i64 @llvm.smax.i64(i64 {inside}, i64 0)")
        if not is_one(share.weight):
            weight = sizes.positive(share.weight)
            if up:
                less = sizes.line(f"sub nuw nsw i64 {weight}, 1") if weight.startswith("%") else share.weight - 1
                inside = line(f"add nuw nsw i64 {inside}, {less}")
            inside = line(f"udiv i64 {inside}, {weight}")
        register, position = self.position[-1]
        ends_last = not register and always("==", position + share.offset + axis.extent * share.weight, self.grains)
        if not ends_last:  # no chunk ends after the last grain
            declare("llvm.smin.i64", "declare i64 @llvm.smin.i64(i64, i64)")
            inside = line(f"call i64 @llvm.smin.i64(i64 {inside}, i64 {sizes.value(axis.extent)})")
        # NOTE: "freeze" hides how a bound is computed; otherwise LLVM would not strength-reduce the addresses inside.
        return line(f"freeze i64 {inside}")
