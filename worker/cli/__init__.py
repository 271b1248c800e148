"""The command line. Each command parses, calls one function below, prints, and exits honestly."""
