#!/bin/sh
# enclosed.sh TREE PERSON COMMAND… is called in mount and process namespaces of its own: everything mounted here is gone as
# soon as this shell is.
set -eu
tree=$1 person=$2
shift 2

mount --make-rprivate /
mount -t proc proc "$tree/proc"
mount --rbind /sys "$tree/sys"
mount -t tmpfs -o mode=755 dev "$tree/dev"
for node in null zero full random urandom tty; do
  : > "$tree/dev/$node"
  mount --bind "/dev/$node" "$tree/dev/$node"
done
mkdir -m 755 "$tree/dev/pts"
mkdir -m 1777 "$tree/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$tree/dev/pts"
mount -t tmpfs -o mode=1777 shm "$tree/dev/shm"
ln -s pts/ptmx "$tree/dev/ptmx"
ln -s /proc/self/fd "$tree/dev/fd"
ln -s /proc/self/fd/0 "$tree/dev/stdin"
ln -s /proc/self/fd/1 "$tree/dev/stdout"
ln -s /proc/self/fd/2 "$tree/dev/stderr"

# Not by exec: changing the user would undo what ends this shell with its parent.
chroot --userspec="$person:$person" "$tree" "$@" || exit $?
