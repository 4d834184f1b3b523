"""Scheduled programs to LLVM text and from there to object code; nothing is decided here."""
