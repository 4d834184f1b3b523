"""Linking of two objects where free memory consists of small pieces, gigabytes apart."""

import ctypes

from graphc.runtime.code.llvm_engine import link
from tests.runtime.native import build

REGION, PIECE, STEP, SMALL = 6 << 30, 0x13000, 0x2000, 16 << 10
ANONYMOUS = 0x4022
"""MAP_PRIVATE, MAP_ANONYMOUS and MAP_NORESERVE of Linux."""
OBJECT = """
@own = internal constant [49152 x i8] c"{zeros}"
{declaration}
define i32 @{name}(i32 %x) {{
  %p = getelementptr i8, ptr @own, i32 %x
  %v = load i8, ptr %p
  %w = zext i8 %v to i32
  %y = {expression}
  %z = add i32 %y, %w
  ret i32 %z
}}
"""

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def reserve(size: int) -> int:
    return libc.mmap(None, size, 0, ANONYMOUS, -1, 0)


def scatter(pieces: int) -> None:
    regions = [reserve(REGION) for _ in range(pieces)]
    while reserve(SMALL) > min(regions):
        pass  # fills what is free above
    for i, start in enumerate(regions):
        libc.munmap(start + REGION - (1 << 20), PIECE + i * STEP)


def main() -> None:
    zeros = "\\01" * 49152
    first = OBJECT.format(
        name="f", zeros=zeros, declaration="declare i32 @next(i32)", expression="call i32 @next(i32 %x)"
    )
    second = OBJECT.format(name="next", zeros=zeros, declaration="", expression="add i32 %x, 37")
    objects = [build(first), build(second)]
    link([build("define void @g() {\n ret void\n}")], ("g",), {})  # starts the engine
    scatter(2)
    code = link(objects, ("f", "next"), {})
    distance = abs(code.addresses["f"] - code.addresses["next"])
    print(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(code.addresses["f"])(3), distance > 1 << 31)


if __name__ == "__main__":
    main()
