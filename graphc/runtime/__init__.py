"""Runtime: loads native code, checks arguments, and calls it. It needs no compiler."""
