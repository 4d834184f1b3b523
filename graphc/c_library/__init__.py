"""Models as C libraries: C functions around native code, with header, demo and loader."""
