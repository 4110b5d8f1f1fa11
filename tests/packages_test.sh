#!/bin/bash
# packages_test.sh DIST - what `scripts/release DIST` made, installed, upgraded, used and removed in a clean Debian 12 root; the
# tarball is used there without installation.  Exits with 77 where a root cannot be made.
set -eu
dist=$(cd "$1" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-packages-XXXXXX")
root=$work/root
trap 'umount "$root/proc" 2>/dev/null; rm -rf "$work"' EXIT
"$(dirname "$0")/../scripts/setup" mmdebstrap dpkg-dev
if ! mmdebstrap --variant=minbase --include=python3 bookworm "$root" >"$work/log" 2>&1; then
    echo "not tried: packages: no Debian root can be made here: $(tail -n 1 "$work/log")"
    exit 77
fi
mount -t proc proc "$root/proc" # the dynamic linker finds libraries beside a program by it

inside() {
    chroot "$root" env -i PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

# Packages in the root, installed or removed: quiet when all is well.
apt() {
    inside sh -c "apt-get $*" >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
}

(cd "$dist" && sha256sum --quiet -c SHA256SUMS)
mkdir "$root/dist"
cp "$dist"/*.deb "$dist"/*.tar.xz "$root/dist/"
# As a stranger to Debian's packages would use it.
inside sh -c 'cd /tmp && python3 -c "import lzma,tarfile,glob; tarfile.open(glob.glob(\"/dist/*.tar.xz\")[0]).extractall()"'
cat >"$root/tmp/use" <<'USE'
set -e
cd "$(mktemp -d)"
"$1" sample drawn --layout imagenette --images 20 --quiet
"$1" ingest drawn dataset --quiet
"$1" verify dataset --quiet
USE
apt update
apt install -y --no-install-recommends zlib1g
inside sh -c 'sh /tmp/use /tmp/millrace-*-linux-*/bin/millrace'

# The packages, then a newer version of them, then none.
apt install -y --no-install-recommends /dist/*.deb
inside sh /tmp/use millrace
inside python3 -c 'import millrace; print(millrace.__version__)' >/dev/null
inside test -s /usr/share/doc/millrace/copyright
inside ldconfig -p | grep -q 'libmillrace.so.0 '
for package in "$root"/dist/*.deb; do
    dpkg-deb -R "$package" "$work/newer"
    sed -i 's/^Version: \(.*\)/Version: \1+1/; s/(= \([0-9.]*\))/(= \1+1)/' "$work/newer/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$work/newer" "${package%.deb}+1.deb" >/dev/null
    rm -rf "$work/newer" "$package"
done
apt install -y --no-install-recommends /dist/*+1.deb
inside sh /tmp/use millrace
# shellcheck disable=SC2016 # the field name is dpkg's
inside dpkg-query -W -f '${Version}\n' millrace | grep -qx '.*+1'
apt purge -y millrace libmillrace0 libmillrace-dev python3-millrace
inside find / -xdev -not -path '/proc*' | grep -i millrace | grep -v '^/dist\|^/tmp\|^/var/lib/apt\|^/var/log' && exit 1
echo "1 passed, 0 failed"
