"""The door for tests: they set the scene and ask the ledger behind the clients' backs."""
