"""Files of object code: read, linked into shared libraries, joined, and kept in archives, without a toolchain."""
