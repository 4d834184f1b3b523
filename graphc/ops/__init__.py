"""Floor 2: the ops, one definition each, and the door through which every application goes."""
