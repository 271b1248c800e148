"""help.*: where the data centres are, and what clients ask when they connect."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyrogram import raw

from worker.sandbox.handlers.registry import handles

if TYPE_CHECKING:
    from worker.sandbox.call import Call

DC_IDS = (1, 2, 3, 4, 5)


@handles(raw.functions.help.GetConfig, needs_account=False)
async def get_config(call: Call, _query: Any) -> Any:
    options = call.sandbox.options
    now = int(time.time())
    return raw.types.Config(
        date=now,
        expires=now + 3600,
        test_mode=False,
        this_dc=call.key.dc_id,
        # All data centres share one address: which one is meant is a property of the key.
        dc_options=[
            raw.types.DcOption(id=dc_id, ip_address=options.host, port=call.sandbox.port) for dc_id in DC_IDS
        ],
        dc_txt_domain_name="",
        chat_size_max=200,
        megagroup_size_max=200_000,
        forwarded_count_max=100,
        online_update_period_ms=210_000,
        offline_blur_timeout_ms=5000,
        offline_idle_timeout_ms=30_000,
        online_cloud_timeout_ms=300_000,
        notify_cloud_delay_ms=30_000,
        notify_default_delay_ms=1500,
        push_chat_period_ms=60_000,
        push_chat_limit=2,
        edit_time_limit=172_800,
        revoke_time_limit=2**31 - 1,
        revoke_pm_time_limit=2**31 - 1,
        rating_e_decay=2_419_200,
        stickers_recent_limit=200,
        channels_read_media_period=604_800,
        call_receive_timeout_ms=20_000,
        call_ring_timeout_ms=90_000,
        call_connect_timeout_ms=30_000,
        call_packet_timeout_ms=10_000,
        me_url_prefix="https://t.me/",
        caption_length_max=4096 if call.account and call.account.premium else 1024,
        message_length_max=4096,
        webfile_dc_id=4,
    )


@handles(raw.functions.help.GetNearestDc, needs_account=False)
async def get_nearest_dc(call: Call, _query: Any) -> Any:
    dc_id = call.sandbox.options.dc_id
    return raw.types.NearestDc(country="XX", this_dc=call.key.dc_id, nearest_dc=dc_id)


@handles(raw.functions.help.GetAppConfig, needs_account=False)
async def get_app_config(_call: Call, _query: Any) -> Any:
    limits = {
        "upload_max_fileparts_default": 4000,
        "upload_max_fileparts_premium": 8000,
        "caption_length_limit_default": 1024,
        "caption_length_limit_premium": 4096,
    }
    values = [
        raw.types.JsonObjectValue(key=key, value=raw.types.JsonNumber(value=float(value)))
        for key, value in limits.items()
    ]
    return raw.types.help.AppConfig(hash=1, config=raw.types.JsonObject(value=values))
