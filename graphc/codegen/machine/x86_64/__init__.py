"""x86-64 processors with SSE2, AVX2 or AVX-512."""
