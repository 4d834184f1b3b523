"""Families of random programs: the steps that each draws from."""
