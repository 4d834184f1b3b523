"""Reader of files that ``torch.export.save`` writes, without importing torch or executing anything in a file."""
