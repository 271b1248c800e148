"""Settings: one typed place, and where each value came from."""
