"""Arm's microcontrollers (Cortex-M) with floating point, whose 32-bit instruction set is Thumb; no operating system."""
