#!/bin/sh
# Installs, on Debian, every program that a test would be skipped without: sh tests/install_tools.sh FOLDER
# FOLDER takes rar6, the last rar that writes the older format, which lies beside no other rar.
set -eu
folder=$1

refuse() { echo "make test-all installs its tools with apt: $1" >&2; exit 2; }

command -v apt-get >/dev/null || refuse "this is no Debian. Install what make test names at its end, and run make test again"
[ "$(id -u)" = 0 ] && root="" || root=sudo
[ -z "$root" ] || command -v sudo >/dev/null || refuse "run it as root, or install sudo"

sources=/etc/apt/sources.list.d/archive-fleet-tests.sources
policy=/usr/sbin/policy-rc.d
clusters=/etc/postgresql-common/createcluster.d
work=$(mktemp -d)
silent=no
clusterless=no
leave() {
  rm -rf "$work"
  $root rm -f "$sources"
  [ "$silent" = no ] || $root rm -f "$policy"
  [ "$clusterless" = no ] || $root rm -f "$clusters/archive-fleet-tests.conf"
}
trap leave EXIT
# A shell that a signal ends runs no EXIT trap of its own accord.
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

apt="$root env DEBIAN_FRONTEND=noninteractive apt-get -qq"
$apt update
# The tests need programs, not services: nothing that is installed here is started, no database is made.
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$work/policy" && $root install -m 755 "$work/policy" "$policy" && silent=yes
fi
[ -d /etc/postgresql-common ] || {
  $root mkdir -p "$clusters" && echo "create_main_cluster = false" >"$work/cluster" \
    && $root install -m 644 "$work/cluster" "$clusters/archive-fleet-tests.conf" && clusterless=yes
}
$apt install --no-install-recommends \
  bzip2 gcc libarchive-tools libc6-dev pgbouncer postgresql python3-dev unzip xz-utils zip zstd >/dev/null

# rar and unrar are not free, and so lie in a component that few have switched on. It is asked of the mirror that this
# machine uses already, for this release and for the one whose rar still writes the older format.
apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' \
  'Component: main' | head -n 1 >"$work/mirror"
read -r mirror codename <"$work/mirror" || refuse "it knows no mirror of Debian's"

# Makes apt see the component of this suite, too.
also() {
  cat >"$work/sources" <<END
Types: deb
URIs: $mirror
Suites: $*
Components: non-free
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
  $root install -m 644 "$work/sources" "$sources" && $apt update
}

if also "$codename" && $apt install --no-install-recommends rar unrar >/dev/null; then
  # The older suite may be gone from the mirror; then there is no older rar.
  also "$codename" bullseye || also "$codename"
  older=$(apt-cache madison rar | awk '{ print $3 }' | grep -m 1 -E '^(2:)?6' || true)
  if [ -n "$older" ] && (cd "$work" && apt-get -qq download "rar=$older" 2>/dev/null); then
    dpkg -x "$work"/rar_*.deb "$work/rar" && install -m 755 "$work/rar/usr/bin/rar" "$folder/rar6"
  else
    echo "no rar that writes the older format is to be had: those samples are not made anew" >&2
  fi
else
  echo "rar and unrar are not to be had from this mirror: their samples are not made anew" >&2
fi
$root rm -f "$sources"
$apt update
