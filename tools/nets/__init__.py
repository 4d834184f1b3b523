"""Nets: commands that search for wrong numbers for as long as they are given, each over one kind of program."""
