"""The graph: its only writer, text, parser, verifier, interpreters, rewriting."""
