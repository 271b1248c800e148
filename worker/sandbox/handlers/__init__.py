"""The API, one module per namespace or concern. Importing this package registers every handler.

A handler takes the call and its query and returns a TL object, or raises ``RpcFault`` in the real server's
words.
"""

from worker.sandbox.handlers import (
    account,
    auth,
    channels,
    contacts,
    dialogs,
    download,
    edits,
    folders,
    forum,
    help,  # noqa: A004 - named after the namespace of the API
    history,
    invites,
    reading,
    sending,
    settings,
    updates,
    upload,
    users,
)
from worker.sandbox.handlers.registry import find

__all__ = [
    "account",
    "auth",
    "channels",
    "contacts",
    "dialogs",
    "download",
    "edits",
    "find",
    "folders",
    "forum",
    "help",
    "history",
    "invites",
    "reading",
    "sending",
    "settings",
    "updates",
    "upload",
    "users",
]
