"""Running many accounts: scheduler, account session, lease, heartbeat, shutdown."""
