#!/usr/bin/env bash
# In the root that use_packages.sh made, with the packages in /packages.
set -euo pipefail
cd /project
# Manual pages are what a base system leaves out.
rm -f /etc/dpkg/dpkg.cfg.d/*docker* /etc/dpkg/dpkg.cfg.d/*excludes* 2>/dev/null || true
apt-get -q update >/dev/null
apt-get -q -y install --no-install-recommends /packages/*.deb >/dev/null

# What runs needs no compiler: they are not there yet.
! command -v g++ >/dev/null
plimsoll --version
plimsoll run examples/digits.onnx --dim batch=1 | grep told
/usr/bin/python3 tests/installed/use_package.py examples
for page in plimsoll plimsoll-plan plimsoll-watch; do zcat "/usr/share/man/man1/$page.1.gz" | grep -q '^.SH SYNOPSIS'; done
# shellcheck disable=SC1091
source /usr/share/bash-completion/completions/plimsoll
COMP_WORDS=(plimsoll plan --lev) COMP_CWORD=2
_plimsoll
[[ ${COMPREPLY[*]} == --level ]]
[[ -d /usr/lib/python3/dist-packages/plimsoll/__pycache__ ]] # compiled when it was installed

apt-get -q -y install --no-install-recommends g++ cmake ninja-build pkg-config >/dev/null
mkdir /room
tests/installed/use_library.sh /room

apt-get -q -y purge plimsoll python3-plimsoll libplimsoll-dev 'libplimsoll0*' >/dev/null
! command -v plimsoll >/dev/null
[[ ! -e /usr/lib/python3/dist-packages/plimsoll ]]
echo "used from a clean root, and removed"
