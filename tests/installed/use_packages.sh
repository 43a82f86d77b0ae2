#!/usr/bin/env bash
# use_packages.sh FOLDER: lintian on the Debian packages there; then they are installed with apt into a root of Debian's base
# system and used from it: the command, its manual pages and completion, C++ by find_package and pkg-config, Python. As root.
set -euo pipefail
folder=$(readlink -f "$1")
((EUID == 0)) || { echo "skipped: a clean root takes root"; exit 77; }
lintian --fail-on error --suppress-tags bad-distribution-in-changes-file "$folder"/*.deb

cache=${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}
base=$cache/bookworm.tar
mkdir -p "$cache"
if [[ ! -f $base ]]; then
  mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' | awk '$2 == "bookworm" {print $1; exit}')
  building=$(mktemp -d "$cache/base.XXXXXX")
  debootstrap --variant=minbase --include=ca-certificates bookworm "$building" "$mirror" >"$cache/debootstrap.log" ||
    { tail -5 "$cache/debootstrap.log"; rm -rf --one-file-system "$building"; echo "skipped: no base system"; exit 77; }
  rm -f "$building"/var/cache/apt/archives/*.deb
  tar -C "$building" -cf "$base.new" . && mv "$base.new" "$base"
  rm -rf --one-file-system "$building"
fi

root=$(mktemp -d "$cache/root.XXXXXX")
# shellcheck disable=SC2064
trap "rm -rf --one-file-system '$root'" EXIT
tar -C "$root" -xf "$base"
rm -rf "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
cp /etc/apt/sources.list.d/debian* "$root/etc/apt/sources.list.d/" 2>/dev/null || cp /etc/apt/sources.list "$root/etc/apt/"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
mkdir -p "$root/packages" "$root/project/tests"
cp "$folder"/*.deb "$root/packages"
cp -r examples "$root/project"
cp -r tests/installed "$root/project/tests"
# Bytes of downloads stay on the machine for the next time.
mkdir -p "$cache/debs" && mkdir -p "$root/var/cache/apt/archives"

export root cache
unshare --mount --propagation private bash -c '
  set -e
  mount --bind "$root" "$root"; cd "$root"
  mount --rbind /proc proc; mount --rbind /sys sys; mount --rbind /dev dev
  mount -t tmpfs tmpfs run
  mount --bind "$cache/debs" var/cache/apt/archives
  mkdir -p old; pivot_root . old; cd /; umount -l /old; rmdir /old
  exec /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /bin/bash /project/tests/installed/in_clean_root.sh' </dev/null
ls -l "$folder"/*.deb | awk '{print $NF ": " $5 " bytes"}'
