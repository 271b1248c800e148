#!/bin/sh
# Makes what docker-compose.yml wants to know: the folder secrets/, and the API id in .env. It overwrites nothing.
# The API id and hash come from the environment (WORKER_TELEGRAM__API_ID, WORKER_TELEGRAM__API_HASH), from .env, or are asked for.
set -eu
umask 077
# While the hash is typed nothing is shown; that must not outlast this script.
[ ! -t 0 ] || trap 'stty echo; exit 130' INT TERM
cd "${1:-$(dirname "$0")/../..}"

say() { printf '  %-27s %s\n' "$1" "$2"; }

fail() { echo "secrets: $1" >&2; exit 2; }

# Writes what it reads, unless the file has something in it already.
keep() {
    if [ -s "secrets/$1" ]; then
        cat > /dev/null
        say "secrets/$1" "is there already, left as it was"
        return
    fi
    # Aside first: a run that is broken off leaves no half of a secret.
    cat > "secrets/.$1.part"
    mv -f "secrets/.$1.part" "secrets/$1"
    # Read in the containers by other users; the folder is closed to those of the host.
    chmod 444 "secrets/$1"
    say "secrets/$1" "made"
}

hex() { od -An -v -tx1 -N"$1" /dev/urandom | tr -d ' \n'; }

from_env_file() { [ ! -f .env ] || sed -n "s/^\(export \)\{0,1\}$1=//p" .env | tail -n 1 | tr -d "\"' \r"; }

# The value of a variable: of the environment, of .env, or what is typed, unseen if it is to be hidden.
asked() {
    eval "value=\${$1:-}"
    [ -n "$value" ] || value=$(from_env_file "$1")
    if [ -z "$value" ] && [ -t 0 ]; then
        printf '%s (from my.telegram.org): ' "$2" >&2
        [ -z "${3:-}" ] || stty -echo
        read -r value || true
        [ -z "${3:-}" ] || { stty echo; echo >&2; }
    fi
    [ -n "$value" ] || fail "no $2. Set $1, or run this in a terminal."
    printf '%s' "$value"
}

mkdir -p secrets
chmod 700 secrets

# The password and the address belong together: one that is missing is made from the other.
if [ -s secrets/postgres_password ]; then
    password=$(cat secrets/postgres_password)
elif [ -s secrets/database_url ]; then
    password=$(sed -n 's|^postgresql://fleet:\([^@]*\)@postgres:5432/fleet$|\1|p' secrets/database_url)
    [ -n "$password" ] || password=$(hex 24)
else
    password=$(hex 24)
fi
case $password in
*[!A-Za-z0-9._~-]*) fail "secrets/postgres_password has characters that an address cannot have. Use letters and digits." ;;
esac
printf '%s\n' "$password" | keep postgres_password
printf 'postgresql://fleet:%s@postgres:5432/fleet\n' "$password" | keep database_url
head -c 32 /dev/urandom | base64 | keep secret_key

if [ -n "$(from_env_file WORKER_TELEGRAM__API_ID)" ]; then
    say ".env" "names an API id already, left as it was"
    id=${WORKER_TELEGRAM__API_ID:-}
    [ -z "$id" ] || [ "$id" = "$(from_env_file WORKER_TELEGRAM__API_ID)" ] || \
        echo "secrets: the environment names another API id, and docker compose takes that one" >&2
else
    id=$(asked WORKER_TELEGRAM__API_ID "API id")
    case $id in *[!0-9]*) fail "an API id is a number" ;; esac
    # A line without an end, as some editors leave it, would swallow this one.
    [ ! -s .env ] || [ -z "$(tail -c 1 .env)" ] || echo >> .env
    printf 'WORKER_TELEGRAM__API_ID=%s\n' "$id" >> .env
    say ".env" "WORKER_TELEGRAM__API_ID added"
fi

if [ -s secrets/api_hash ]; then
    keep api_hash < /dev/null
else
    hash=$(asked WORKER_TELEGRAM__API_HASH "API hash" hidden)
    hash=$(printf %s "$hash" | tr A-F a-f)
    case $hash in *[!0-9a-f]*) fail "an API hash is 32 digits from 0 to f" ;; esac
    [ "${#hash}" = 32 ] || fail "an API hash is 32 digits from 0 to f"
    printf '%s\n' "$hash" | keep api_hash
fi
echo "Keep secrets/secret_key with your backups: without it no session can be opened."
