"""Ops that combine elements along axes or in windows: sums, extremes, statistics, pools."""
