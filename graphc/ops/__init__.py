"""The ops, one definition each, and the door through which every application goes."""
