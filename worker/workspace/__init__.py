"""The disk: where downloads are kept while a set is in flight, and nothing else.

Names on disk are made from ids, never from what Telegram calls a file.
"""
