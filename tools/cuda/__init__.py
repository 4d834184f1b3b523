"""Proofs of the CUDA path: what is compiled for a device, how it is compared with the CPU, which faults are planted."""
