"""Models in files that ``torch.export.save`` writes; no torch is imported here, and nothing in a file is executed."""
