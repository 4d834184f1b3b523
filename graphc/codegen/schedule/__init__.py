"""Schedules for CPUs and GPUs: tile, vectorise, unroll and parallelise the loops of a program's kernels."""
