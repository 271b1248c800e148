"""What one look at a channel goes by to tell our messages from others, as it stands when the look begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.config.secret_key import marker_keys
from worker.domain.origin import Authority
from worker.store.accounts import user_ids

if TYPE_CHECKING:
    from worker.domain.telegram import ChannelRef
    from worker.pipeline.deps import Deps


async def authority_in(deps: Deps, channel: ChannelRef) -> Authority:
    """The keys as their file has them at this moment, and every account that was ever logged in here."""
    accounts = await user_ids(deps.database)
    if deps.account.telegram_user_id is not None:
        accounts |= {deps.account.telegram_user_id}
    return Authority(channel.telegram_id, marker_keys(deps.settings), accounts)
