"""StableHLO texts with inputs and outputs, which the tests read without JAX."""
