"""Loads native code, checks arguments, and calls it; needs no compiler."""
