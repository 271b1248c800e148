"""Flow control in four small parts, each usable alone: lanes, governor, outbox, runner.

What they need of a database or of Telegram they state as Protocols; clock and sleep are passed in.
"""
