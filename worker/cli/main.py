"""The ``worker`` command."""


def main() -> None:
    """Run the command line."""
