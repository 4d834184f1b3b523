"""Ops of control flow: branches, loops, calls of subgraphs, checkpoints."""
