"""The kernel IR: statements, index expressions, text, parser, verifier, interpreter."""
