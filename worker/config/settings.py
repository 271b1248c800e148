"""Every setting with its type, its default and what it is for.

This is the one place where a default value stands. ``worker doctor`` prints the whole table.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

T = TypeVar("T", bound=BaseModel)
Positive = Annotated[int, Field(gt=0)]
NotNegative = Annotated[int, Field(ge=0)]


def default_data_dir() -> Path:
    """The platform's user-data folder; for root the site's, which PostgreSQL's own user can enter."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/archive-fleet")
    return Path(platformdirs.user_data_dir("archive-fleet", appauthor=False))


class _Table(BaseModel):
    # Neither infinity nor "not a number" is a time to wait or a factor to grow by.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _ordered(table: T, *bounds: tuple[str, int, str]) -> T:
    """Refuse a table in which ``factor`` times the smaller setting exceeds the larger one."""
    for smaller, factor, larger in bounds:
        if getattr(table, smaller) * factor > getattr(table, larger):
            times = f"{factor} times " if factor > 1 else ""
            raise ValueError(f"{larger} must be at least {times}{smaller}")
    return table


class TelegramSettings(_Table):
    """Where Telegram is, and as which application we speak to it."""

    api_id: Positive | None = Field(None, description="application id from my.telegram.org")
    api_hash: SecretStr | None = Field(None, description="application hash from my.telegram.org")
    test_servers: bool = Field(False, description="use Telegram's test data centres")
    host: str | None = Field(None, description="another server's address, such as the sandbox's")
    port: Annotated[int, Field(gt=0, lt=65536)] = Field(443, description="another server's port")
    public_key: Path | None = Field(None, description="PEM file of another server's RSA key")
    bind_address: str | None = Field(None, description="local address that connections start from")
    call_timeout_secs: Annotated[float, Field(gt=0)] = Field(15.0, description="deadline of one call")


class LeaseSettings(_Table):
    """How long an account stays with a worker that has fallen silent."""

    lease_secs: Annotated[float, Field(ge=1)] = Field(30.0, description="trust in a lease after a heartbeat")
    heartbeat_secs: Annotated[float, Field(gt=0)] = Field(5.0, description="time between heartbeats")

    @model_validator(mode="after")
    def _heartbeats_fit(self) -> Self:
        """One lost heartbeat must not cost the lease."""
        return _ordered(self, ("heartbeat_secs", 2, "lease_secs"))

    @property
    def disconnect_secs(self) -> int:
        """How long Telegram keeps a connection of ours on which it hears nothing; it takes whole seconds."""
        # A shorter silence than two seconds befalls any busy machine.
        return max(2, int(self.lease_secs / 2))


class FleetSettings(_Table):
    """How the fleet works through its sets."""

    # One is being fetched while another is published and a third one is listed.
    sets_in_flight: Positive = Field(4, description="sets one account works on at once")
    cycle_secs: Annotated[float, Field(gt=0)] = Field(60.0, description="pause between scans of a channel")
    max_attempts: Positive = Field(8, description="attempts before a set is given up visibly")
    retry_base_secs: Annotated[float, Field(gt=0)] = Field(60.0, description="first back-off of a failed set")
    retry_cap_secs: Annotated[float, Field(gt=0)] = Field(21600.0, description="longest back-off of a set")
    busy_retry_secs: Annotated[float, Field(gt=0)] = Field(5.0, description="look again at a busy hash after")
    busy_cap_secs: Annotated[float, Field(gt=0)] = Field(300.0, description="longest wait for a busy hash")
    unproven_after_secs: Annotated[float, Field(ge=0)] = Field(
        259_200.0, description="wait for parts of a set that nothing can prove whole"
    )
    republish_deleted: bool = Field(False, description="publish again what a person deleted there")
    # Telegram names no limit. Channels took no more, or lost what was oldest, from 500,000 to a million.
    destination_messages: Positive = Field(
        500_000, description="a destination that has come to this message is full"
    )
    drain_secs: Annotated[float, Field(gt=0)] = Field(60.0, description="time to finish work on SIGTERM")

    @model_validator(mode="after")
    def _back_off_grows(self) -> Self:
        return _ordered(
            self, ("retry_base_secs", 1, "retry_cap_secs"), ("busy_retry_secs", 1, "busy_cap_secs")
        )


class TransferSettings(_Table):
    """Sizes and bounds of uploads and downloads."""

    # Telegram takes 4000 parts of 512 KiB, 8000 with Premium.
    standard_limit_mib: Annotated[int, Field(gt=0, le=2000)] = Field(
        1950, description="largest part of a standard account"
    )
    premium_limit_mib: Annotated[int, Field(gt=0, le=4000)] = Field(
        3950, description="largest part of a Premium account"
    )
    parts_in_flight: Positive = Field(
        32,
        description="most file parts an account has under way to one data centre; it finds out how many pay",
    )
    connections: Annotated[int, Field(gt=0, le=16)] = Field(
        8, description="most file connections of an account to one data centre"
    )
    min_free_mib: NotNegative = Field(512, description="disk space that is never reserved")


class RateLimitSettings(_Table):
    """Paces, back-off, flood waits and how long the records of them are kept."""

    inter_batch_delay_ms: NotNegative = Field(1000, description="between pages of one channel")
    inter_job_delay_ms: NotNegative = Field(3000, description="between channels")
    initial_backoff_ms: Positive = Field(100, description="first back-off after a failed call")
    max_backoff_ms: Positive = Field(60_000, description="longest back-off after a failed call")
    backoff_multiplier: Annotated[float, Field(ge=1)] = Field(2.0, description="growth of the back-off")
    jitter_factor: Annotated[float, Field(ge=0, le=1)] = Field(0.1, description="random share of a back-off")
    max_retries: NotNegative = Field(5, description="retries of a failed call")
    flood_wait_buffer_min_secs: NotNegative = Field(1, description="least added to a flood wait")
    flood_wait_buffer_max_secs: NotNegative = Field(2, description="most added to a flood wait")
    flood_wait_escalation_count: Positive = Field(3, description="flood waits that make an escalation")
    flood_wait_escalation_window_mins: Positive = Field(60, description="within this time")
    flood_wait_escalation_extra_secs: NotNegative = Field(300, description="added by an escalation")
    activity_log_retention_days: Positive = Field(7, description="how long API activity is kept")
    get_history_per_min: Positive = Field(30, description="history pages per account, and per chat")
    search_per_min: Positive = Field(20, description="searches per account")
    get_contacts_per_min: Positive = Field(5, description="contact lists per account")
    send_message_per_min: Positive = Field(30, description="messages per account")
    get_participants_per_min: Positive = Field(20, description="member lists per account")
    premium_factor: Annotated[float, Field(ge=1)] = Field(1.5, description="more messages for Premium")
    other_calls_per_min: Positive = Field(60, description="calls of any other method per account")
    private_chat_per_min: Positive = Field(60, description="writes to one private chat")
    group_chat_per_min: Positive = Field(20, description="writes to one group or channel")
    profile: Literal["telegram", "relaxed"] = Field(
        "telegram", description="relaxed: no paces and delays, for a loopback Telegram only"
    )

    @model_validator(mode="after")
    def _bounds_are_ordered(self) -> Self:
        return _ordered(
            self,
            ("initial_backoff_ms", 1, "max_backoff_ms"),
            ("flood_wait_buffer_min_secs", 1, "flood_wait_buffer_max_secs"),
        )


class OperationsSettings(_Table):
    """Where the fleet tells people what it does."""

    chat: Positive | None = Field(
        None,
        description="Telegram id of the channel or supergroup to tell; not the destination",
    )


class Settings(BaseSettings):
    """Environment (``WORKER_…``) over ``worker.toml`` over these defaults."""

    model_config = SettingsConfigDict(
        env_prefix="WORKER_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    database_url: SecretStr | None = Field(None, description="PostgreSQL; an embedded server if not set")
    data_dir: Path = Field(default_factory=default_data_dir, description="downloads and the embedded server")
    secret_key: SecretStr | None = Field(None, description="encrypts sessions; made with the embedded server")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level logged")
    log_format: Literal["auto", "console", "json"] = Field("auto", description="console on a terminal")
    telegram: TelegramSettings = TelegramSettings()
    lease: LeaseSettings = LeaseSettings()
    fleet: FleetSettings = FleetSettings()
    transfer: TransferSettings = TransferSettings()
    rate_limits: RateLimitSettings = RateLimitSettings()
    operations: OperationsSettings = OperationsSettings()

    @field_validator("data_dir")
    @classmethod
    def _a_real_folder(cls, value: Path) -> Path:
        """A tilde from a file was never expanded by a shell; an empty value would mean "right here"."""
        if value == Path():
            raise ValueError("names no folder")
        return value.expanduser().absolute()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the library's signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take the values as given: ``worker.config.load`` merges the sources and remembers the origins."""
        return (init_settings,)
