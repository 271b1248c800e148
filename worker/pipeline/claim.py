"""Taking the next set that is ready."""
