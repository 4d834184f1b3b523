"""The way from Python into native code, as LLVM text."""
