"""What a scheduled kernel does and what it is expected to cost."""
