"""Mach-O object files and libraries of macOS: reader and linker."""
