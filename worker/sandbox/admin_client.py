"""The client of the admin port: how tests arrange the server and ask its ledger.

The wire is newline-delimited JSON over TCP, one request per line and one answer per line, in order:

    -> {"token": "…", "do": "create_account", "with": {"phone": "+49301", "first_name": "Ada"}}
    <- {"ok": true, "result": {"user_id": 5000000001}}
    <- {"ok": false, "error": "ValueError: no account has the number +49301"}

``token`` is what stands in ``admin.token`` in the server's state directory, anew at each start; a line
without it is refused, and the connection closed. ``do`` is the name of a method below, ``with`` its arguments
by name. Files are named by their path on this machine. Numbers of 64 bits (document ids, random ids) are
plain JSON numbers.
"""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN_FILE = "admin.token"  # noqa: S105 - the name of a file


class SandboxAdminError(Exception):
    """The server refused a command; the message says why."""


def _read(line: bytes) -> Any:
    if not line:
        raise SandboxAdminError("the sandbox closed the admin connection")
    answer = json.loads(line)
    if not answer["ok"]:
        raise SandboxAdminError(answer["error"])
    return answer["result"]


def _absolute(path: Path | str) -> str:
    return str(Path(path).resolve())


class SandboxAdmin:
    """One connection per command: usable from anywhere, and across restarts of the server."""

    def __init__(self, host: str, port: int, token_file: Path) -> None:
        self._host = host
        self._port = port
        self._token_file = token_file

    @classmethod
    def announced(cls, facts: Mapping[str, Any]) -> Self:
        """The one of the server that has printed these facts."""
        return cls(facts["host"], facts["admin_port"], Path(facts["admin_token_file"]))

    def _request(self, name: str, arguments: Mapping[str, Any]) -> bytes:
        # Read for each command: a server that was started again has another one.
        try:
            token = self._token_file.read_text()
        except OSError as error:
            raise SandboxAdminError(f"{self._token_file} cannot be read: {error.strerror}") from error
        return json.dumps({"token": token, "do": name, "with": arguments}).encode() + b"\n"

    async def do(self, name: str, **arguments: Any) -> Any:
        """Run any command by name; the methods below are the ones with a promise."""
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=1 << 28)
        try:
            writer.write(self._request(name, arguments))
            return _read(await reader.readline())
        finally:
            writer.close()

    def do_now(self, name: str, **arguments: Any) -> Any:
        """The blocking twin of ``do``, for scripts and threads."""
        with socket.create_connection((self._host, self._port)) as connection:
            connection.sendall(self._request(name, arguments))
            with connection.makefile("rb") as lines:
                return _read(lines.readline())

    async def create_account(
        self, phone: str, first_name: str, *, premium: bool = False, password: str | None = None
    ) -> dict[str, Any]:
        """Return ``{"user_id": …}``."""
        found: dict[str, Any] = await self.do(
            "create_account", phone=phone, first_name=first_name, premium=premium, password=password
        )
        return found

    async def create_channel(
        self, title: str, *, members: list[str] | None = None, admins: list[str] | None = None, **options: Any
    ) -> dict[str, Any]:
        """Return ``{"channel_id": …}``.

        The first administrator owns the channel; without one a stranger does, and posts what the test posts.

        Options: broadcast (true), username, noforwards, forum, hidden_history.
        """
        made: dict[str, Any] = await self.do(
            "create_channel", title=title, members=members or [], admins=admins or [], **options
        )
        return made

    async def post_document(
        self, channel_id: int, path: Path | str, file_name: str, **options: Any
    ) -> dict[str, Any]:
        """Post a file of this machine; return ``{"message_id": …, "document_id": …}``.

        Options: caption, mime (application/zip), by (phone; the owner posts by default), topic_id, reply_to,
        grouped_id, photo (false), dc_id.
        """
        posted: dict[str, Any] = await self.do(
            "post_document",
            channel_id=channel_id,
            path=_absolute(path),
            file_name=file_name,
            **options,
        )
        return posted

    async def post_photo(self, channel_id: int, path: Path | str, **options: Any) -> dict[str, Any]:
        return await self.post_document(channel_id, path, Path(path).name, photo=True, **options)

    async def repost(self, channel_id: int, document_id: int, **options: Any) -> dict[str, Any]:
        """Post a document that exists already. Options: caption, by."""
        posted: dict[str, Any] = await self.do(
            "repost", channel_id=channel_id, document_id=document_id, **options
        )
        return posted

    async def post_text(self, channel_id: int, text: str, **options: Any) -> dict[str, Any]:
        """Return ``{"message_id": …}``. Options: by, topic_id."""
        posted: dict[str, Any] = await self.do("post_text", channel_id=channel_id, text=text, **options)
        return posted

    async def fill_channel(self, channel_id: int, count: int, **options: Any) -> dict[str, Any]:
        """Post many messages in one command; return ``{"message_ids": […]}``.

        Options: text ("message {}"), by, topic_id; with path each message carries a document of its own with
        that file's bytes, and file_name ("archive-{}.zip"), mime, grouped_id, photo and dc_id are options
        too. ``{}`` stands for the message's number, from 1 on.
        """
        if options.get("path") is not None:
            options["path"] = _absolute(options["path"])
        filled: dict[str, Any] = await self.do("fill_channel", channel_id=channel_id, count=count, **options)
        return filled

    async def set_forum(self, channel_id: int, forum: bool) -> None:
        await self.do("set_forum", channel_id=channel_id, forum=forum)

    async def create_topic(self, channel_id: int, title: str) -> dict[str, Any]:
        """Return ``{"topic_id": …}``."""
        made: dict[str, Any] = await self.do("create_topic", channel_id=channel_id, title=title)
        return made

    async def delete_topic(self, channel_id: int, topic_id: int) -> None:
        """Delete a topic with all of its messages; who asks for them is refused."""
        await self.do("delete_topic", channel_id=channel_id, topic_id=topic_id)

    async def invite_link(self, channel_id: int) -> str:
        """Return the channel's invitation link."""
        return str(await self.do("invite_link", channel_id=channel_id))

    async def replace_document(self, channel_id: int, message_id: int, document_id: int) -> None:
        """Edit a message so that it shows this document, which was posted somewhere before."""
        await self.do(
            "replace_document", channel_id=channel_id, message_id=message_id, document_id=document_id
        )

    async def edit_caption(self, channel_id: int, message_id: int, caption: str) -> None:
        """Edit a message so that it has this text."""
        await self.do("edit_caption", channel_id=channel_id, message_id=message_id, caption=caption)

    async def delete_messages(self, channel_id: int, ids: list[int]) -> dict[str, Any]:
        """Return ``{"deleted": [ids that were there]}``."""
        gone: dict[str, Any] = await self.do("delete_messages", channel_id=channel_id, ids=ids)
        return gone

    async def bring_back(self, channel_id: int, ids: list[int]) -> None:
        """Show deleted messages again, as a server does that had lost sight of them."""
        await self.do("bring_back", channel_id=channel_id, ids=ids)

    async def hide_from_search(self, channel_id: int, ids: list[int]) -> None:
        """Search will not find these messages; history still shows them."""
        await self.do("hide_from_search", channel_id=channel_id, ids=ids)

    async def set_premium(self, phone: str, premium: bool) -> None:
        await self.do("set_premium", phone=phone, premium=premium)

    async def set_password(self, phone: str, password: str | None) -> None:
        """Switch two-step verification on with this password, or off with None."""
        await self.do("set_password", phone=phone, password=password)

    async def ban_account(self, phone: str) -> None:
        await self.do("ban_account", phone=phone)

    async def revoke_sessions(self, phone: str) -> None:
        """Every key of the account answers 401 SESSION_REVOKED from here on."""
        await self.do("revoke_sessions", phone=phone)

    async def kick(self, channel_id: int, phone: str) -> None:
        await self.do("kick", channel_id=channel_id, phone=phone)

    async def join(self, channel_id: int, phone: str, *, admin: bool = False) -> None:
        await self.do("join", channel_id=channel_id, phone=phone, admin=admin)

    async def hide_history(self, channel_id: int, *, hidden: bool = True) -> None:
        """Whoever comes in from here on sees nothing older, or everything again."""
        await self.do("hide_history", channel_id=channel_id, hidden=hidden)

    async def clear_history(self, channel_id: int, phone: str) -> None:
        """Hide all that was posted so far from this member alone, who stays in the channel."""
        await self.do("clear_history", channel_id=channel_id, phone=phone)

    async def archive_chat(self, channel_id: int, phone: str) -> None:
        """Move the chat to the archive in this account's list."""
        await self.do("archive_chat", channel_id=channel_id, phone=phone)

    async def set_noforwards(self, channel_id: int, noforwards: bool) -> None:
        await self.do("set_noforwards", channel_id=channel_id, noforwards=noforwards)

    async def protect_message(self, channel_id: int, message_id: int, *, protected: bool = True) -> None:
        """Forbid forwarding this one message and sending its file again, or allow both."""
        await self.do("protect_message", channel_id=channel_id, message_id=message_id, protected=protected)

    async def set_repeats(self, *, as_errors: bool) -> None:
        """Say whether a repeated random_id answers 500 RANDOM_ID_DUPLICATE or the original message."""
        await self.do("set_repeats", as_errors=as_errors)

    async def refuse_spent_codes(self, text: str) -> None:
        """What a login code is refused with that was used before, in place of PHONE_CODE_EXPIRED."""
        await self.do("refuse_spent_codes", text=text)

    async def set_shape(self, *, rtt_ms: float = 0, mbps: float = 0, account_mbps: float = 0) -> None:
        """Latency and bandwidth of the connections made from here on; 0 is unlimited."""
        await self.do("set_shape", rtt_ms=rtt_ms, mbps=mbps, account_mbps=account_mbps)

    async def expire_references(self) -> None:
        """File references handed out so far answer FILE_REFERENCE_EXPIRED."""
        await self.do("expire_references")

    async def lose_parts(self, phone: str, parts: list[int]) -> dict[str, int]:
        """Forget uploaded parts that no message has used yet; sending answers FILE_PART_X_MISSING."""
        lost: dict[str, int] = await self.do("lose_parts", phone=phone, parts=parts)
        return lost

    async def disconnect(self, phone: str) -> None:
        """Cut every connection of the account."""
        await self.do("disconnect", phone=phone)

    async def freeze(self, phone: str) -> None:
        """Let every connection of the account fall silent without closing it."""
        await self.do("freeze", phone=phone)

    async def messages(self, channel_id: int) -> list[dict[str, Any]]:
        """Everything ever posted, deleted messages too.

        Each: id, user_id, phone, kind, text, document_id, file_name, size, sha256, random_id, topic_id,
        reply_to, grouped_id, date, edit_date, deleted.
        """
        listed: list[dict[str, Any]] = await self.do("messages", channel_id=channel_id)
        return listed

    async def connections(self) -> list[dict[str, Any]]:
        """auth_key_id, phone, address, connected_at, disconnected_at (None while connected)."""
        listed: list[dict[str, Any]] = await self.do("connections")
        return listed

    async def calls(self, method: str | None = None, *, after: int = 0) -> list[dict[str, Any]]:
        """Each call: id, at (when it began), phone, method, ok, error, address, early.

        ``early`` is a call that began before the end of a FLOOD_WAIT its account had been given for this
        method. Accepted file parts are recorded with --record-all-calls only.
        """
        listed: list[dict[str, Any]] = await self.do("calls", method=method, after=after)
        return listed

    async def add_rule(self, method: str, action: str, **options: Any) -> int:
        """Add a fault and return its id.

        ``method`` is a name like messages.sendMedia, or *. Actions: error (code, text), delay (seconds), late
        (seconds; applied at once, answered later), stall, disconnect, drop_reply, mute, freeze, corrupt,
        short, limit (count calls per seconds; more are answered with FLOOD_WAIT). With ``seconds=None`` delay
        and late last until the rule is lifted.
        Options for all: nth (1: counted from now), count (1; 0 is for ever), account (phone).
        """
        return int(await self.do("add_rule", method=method, action=action, **options))

    async def lift_rule(self, rule_id: int) -> None:
        """End a rule; the calls that it holds go on."""
        await self.do("lift_rule", rule_id=rule_id)

    async def clear_rules(self) -> None:
        await self.do("clear_rules")

    async def rule_hits(self) -> dict[int, int]:
        """Return how often each rule has fired."""
        return {int(rule_id): count for rule_id, count in (await self.do("rule_hits")).items()}
