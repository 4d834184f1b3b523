"""Object files: reading, linking into shared libraries, joining and archiving, without a toolchain."""
