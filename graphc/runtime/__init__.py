"""Floor 5: loads native code, checks arguments, and calls it; needs no compiler."""
