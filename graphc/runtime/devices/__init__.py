"""Devices that compiled programs run on besides the CPU."""
