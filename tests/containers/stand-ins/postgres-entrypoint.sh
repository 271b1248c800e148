#!/bin/sh
# Makes a cluster on the first start, as POSTGRES_USER, POSTGRES_DB and POSTGRES_PASSWORD(_FILE) say, and becomes the server.
set -eu

if [ "$(id -u)" = 0 ]; then
    install -d -o postgres -g postgres -m 0700 "$PGDATA"
    chown postgres:postgres /var/lib/postgresql "$(dirname "$PGDATA")"
    # The secrets are read while this is still root.
    if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
        POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
        export POSTGRES_PASSWORD
        unset POSTGRES_PASSWORD_FILE
    fi
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    : "${POSTGRES_PASSWORD:?is not set, and neither is POSTGRES_PASSWORD_FILE}"
    user=${POSTGRES_USER:-postgres}
    printf '%s\n' "$POSTGRES_PASSWORD" > /tmp/password
    initdb --username="$user" --pwfile=/tmp/password --auth-host=scram-sha-256 --auth-local=trust -D "$PGDATA"
    rm /tmp/password
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    # On its socket alone, so that nobody takes the half-made server for a ready one.
    pg_ctl -D "$PGDATA" -w -o "-c listen_addresses=''" start
    [ "${POSTGRES_DB:-$user}" = postgres ] || createdb --username="$user" --maintenance-db=postgres "${POSTGRES_DB:-$user}"
    pg_ctl -D "$PGDATA" -w -m fast stop
fi
unset POSTGRES_PASSWORD
exec "$@"
