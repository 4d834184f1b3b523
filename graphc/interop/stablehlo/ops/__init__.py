"""Rules of StableHLO and CHLO operations, by family."""
