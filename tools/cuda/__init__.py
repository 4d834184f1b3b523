"""Checks of the CUDA path: programs compiled for a device, compared with the CPU, and planted faults."""
