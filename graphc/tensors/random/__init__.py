"""Random numbers: generators, draws of tensors, and draws by compiled programs."""
