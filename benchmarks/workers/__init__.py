"""Child processes that take one measurement each and print it as JSON."""
