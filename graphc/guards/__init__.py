"""Guards: records of state outside that compiled code relies on, and words of memory that show a change cheaply."""
