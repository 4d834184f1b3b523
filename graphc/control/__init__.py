"""Control flow in traces: scans, loops, branches, vectorized functions and checkpoints over traced subgraphs."""
