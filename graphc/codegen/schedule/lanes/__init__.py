"""Vectorisation: the choice of loops to run across the lanes of vectors."""
