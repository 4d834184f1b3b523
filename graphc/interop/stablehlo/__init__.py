"""Reader of StableHLO text, the programs that JAX exports, which needs neither MLIR nor JAX."""
