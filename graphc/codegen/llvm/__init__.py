"""Scheduled programs to LLVM text, and from there to object code. Scheduling decisions are made elsewhere."""
