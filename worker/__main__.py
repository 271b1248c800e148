"""``python -m worker``."""

from worker.cli.main import main

main()
