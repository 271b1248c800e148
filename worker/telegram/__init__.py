"""The border to Telegram: a small typed gateway over the client library.

Nothing above this package sees a class of the library. Every call has a deadline, every error is mapped to
the classes in ``worker.errors``, and the library never retries by itself. What arrives is bounded before
it is read, and nothing lasting follows from what was not opened with our key.
"""

import logging

# Without tgcrypto the library warns of a slow cipher at its import; ``aes_backend`` puts ours in its place.
logging.getLogger("pyrogram.crypto.aes").setLevel(logging.ERROR)
