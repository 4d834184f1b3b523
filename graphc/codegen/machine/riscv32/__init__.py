"""32-bit RISC-V microcontrollers with compressed instructions, with or without f32; no operating system."""
