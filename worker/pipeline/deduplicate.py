"""Whether these bytes are already published."""
