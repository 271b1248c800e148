"""Bringing a set's bytes to the disk."""
