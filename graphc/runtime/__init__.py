"""Runtime: loads native code, checks arguments, and calls it, without the compiler."""
