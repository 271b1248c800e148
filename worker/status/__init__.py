"""The read model: what the fleet is doing and why something waits."""
