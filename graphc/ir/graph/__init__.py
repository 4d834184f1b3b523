"""The graph IR: data structure, text, parser, verifier, interpreters, rewriting."""
