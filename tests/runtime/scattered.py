"""Linking of a program where free memory consists of small pieces, gigabytes apart."""

import ctypes

import graphc as gc
from graphc import nn
from graphc.files.object_archive import split_objects
from graphc.runtime import loader

REGION, PIECE, STEP, SMALL = 6 << 30, 0x13000, 0x2000, 16 << 10
ANONYMOUS = 0x4022
"""MAP_PRIVATE, MAP_ANONYMOUS and MAP_NORESERVE of Linux."""

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


class Linked:
    """Counter of linked parts, which scatters memory before linking the first large program."""

    parts = 0

    def __init__(self):
        self.link = loader._link

    def __call__(self, code, names, target):
        found = len(split_objects(code))
        if found > 1 and not self.parts:
            self.parts = found
            scatter(found - 1)
        return self.link(code, names, target)


def main() -> None:
    loader._link = linked = Linked()
    layers = [[nn.Conv2d(4 + i, 5 + i, 3, padding=1), nn.GELU() if i % 2 else nn.SiLU()] for i in range(24)]
    net = nn.Sequential(*[layer for pair in layers for layer in pair])
    step = gc.compile_step(net, lambda y: (y**2).mean(), gc.optim.SGD(net.parameters(), lr=0.1))
    x = gc.rand(2, 4, 24, 24)
    expected = (net(x) ** 2).mean().item()
    print(abs(step(x).item() - expected) < 1e-6, linked.parts > 1)


if __name__ == "__main__":
    main()
