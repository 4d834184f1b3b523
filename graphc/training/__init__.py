"""Trainings: a loop over batches with validation, early stops and checkpoints, and its history."""
