"""Measurements of several processes that train together: equal results and shared optimizer state."""
