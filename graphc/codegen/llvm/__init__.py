"""Scheduled programs to LLVM text, and from there to object code; the schedule makes all decisions."""
