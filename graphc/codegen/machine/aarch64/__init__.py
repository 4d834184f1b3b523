"""64-bit Arm processors with NEON."""
