"""Native code in memory: linked, protected from writes, and freed with its owner."""
