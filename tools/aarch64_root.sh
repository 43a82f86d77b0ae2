#!/usr/bin/env bash
# tools/aarch64_root.sh: the arm64 packages that a cross build is compiled and run against, from the Debian that this machine
# has, unpacked in the cache and never installed. Prints the folder. Made again when the list of packages is another.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
source tools/packages.sh

room=${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}/aarch64
root=$room/root # cmake/aarch64.cmake looks here
wanted="${AARCH64_ROOT_PACKAGES[*]}"
if [[ -f $room/packages && $(<"$room/packages") == "$wanted" ]]; then
  echo "$root"
  exit 0
fi

# An apt of our own: the machine's sources and keys, but lists, archives and what counts as installed (nothing) are here.
rm -rf "$room"
mkdir -p "$room"/{lists,archives}/partial
touch "$room/status"
apt=(apt-get -q -y -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Debug::NoLocking=1
  -o Dir::State::Lists="$room/lists" -o Dir::State::status="$room/status" -o Dir::Cache="$room" -o Dir::Cache::Archives="$room/archives"
  -o APT::Update::Post-Invoke::= -o APT::Sandbox::User=)
"${apt[@]}" update >/dev/null
"${apt[@]}" install --download-only --no-install-recommends "${AARCH64_ROOT_PACKAGES[@]}" >/dev/null
for package in "$room"/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
rm -r "$room"/{lists,archives,status}
echo "$wanted" >"$room/packages"
echo "$root"
