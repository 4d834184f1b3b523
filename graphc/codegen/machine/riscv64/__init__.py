"""64-bit RISC-V processors with compressed instructions and f64, with or without vectors."""
