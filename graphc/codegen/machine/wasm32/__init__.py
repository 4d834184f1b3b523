"""WebAssembly with 32-bit addresses and vectors of 16 bytes (SIMD128), without threads."""
