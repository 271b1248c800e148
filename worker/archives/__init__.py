"""What archives are: recognising, grouping, proving complete, listing, splitting.

Works on names and on seekable byte readers; knows nothing of Telegram or PostgreSQL. Parsing of
foreign bytes happens in a bounded child process.
"""
