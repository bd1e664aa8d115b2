#!/usr/bin/env bash
# Tries the packages in a fresh Debian: installs them, runs the commands of the first program as the
# package's README prints them, and the demo, purges them, and compares what is left with what was
# there. Needs root, mmdebstrap or debootstrap, and Debian's packages; says so and ends well where
# these cannot be had.
#
# usage: packaging/test.sh FOLDER   (where `make deb` put the packages)
set -euo pipefail
packages=$(realpath "$1")
skip() { echo "package test: not tried: $1"; exit 0; }
step() { echo "package test: $1"; }
[ "$(id -u)" = 0 ] || skip 'it needs root'
command -v mmdebstrap >/dev/null || command -v debootstrap >/dev/null \
  || skip 'neither mmdebstrap nor debootstrap is installed'
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)

# Mounts are seen by this process and its children alone, and end with them.
if [ -z "${STATEPLANE_UNSHARED:-}" ]; then
  exec env STATEPLANE_UNSHARED=1 unshare --mount --propagation private --pid --fork --kill-child \
    --mount-proc "$0" "$@"
fi

work=$(mktemp -d)
trap 'cd /; umount -R -l "$work/root" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
root=$work/root

step "a fresh root of $suite"
# This machine's own sources of packages, in the one form that both tools take.
sources() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | sort -u \
    | while read -r uri release component; do
        echo "deb $uri $release $component"
      done
}
sources > "$work/sources.list"
[ -s "$work/sources.list" ] || skip 'apt has no lists of packages (apt-get update)'
make_root() {
  if command -v mmdebstrap >/dev/null; then
    mmdebstrap --quiet --mode=root --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
      --aptopt='Acquire::Check-Date "false"' "$suite" "$root" "$work/sources.list"
  else
    debootstrap --variant=minbase --no-check-gpg "$suite" "$root" \
      "$(awk '{ print $3; exit }' "$work/sources.list")" && cp "$work/sources.list" "$root/etc/apt/"
  fi
}
make_root > "$work/log" 2>&1 || { tail -5 "$work/log"; skip "Debian's packages cannot be had"; }

mount --bind "$root" "$root"
for folder in proc sys dev; do mount --rbind "/$folder" "$root/$folder"; done
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
apt() {
  inside DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Check-Valid-Until=false \
    -o Acquire::Check-Date=false -o Dpkg::Use-Pty=0 "$@" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}
# What is in the root, without the records of the tools that install.
listing() {
  (cd "$root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache \
    -o -path ./var/log -o -path ./etc/ld.so.cache \) -prune -o ! -type d -print | LC_ALL=C sort
   sed 's/^/user /' etc/passwd; sed 's/^/group /' etc/group; ls -d var/lib/*)
}

step 'tools that the package recommends'
inside apt-get -qq update > "$work/log" 2>&1 || { tail -5 "$work/log"; skip "Debian's packages cannot be had"; }
apt install --no-install-recommends iproute2 ethtool iperf3 systemd
listing > "$work/before"

step 'install'
mkdir -p "$root/tmp/packages" "$root/tmp/work"
cp "$packages"/*.deb "$root/tmp/packages"
apt install $(cd "$root" && printf '/%s ' tmp/packages/*.deb)
inside stateplane --version
user() { inside getent passwd "stateplane-$1" >/dev/null || { echo "no user of $1"; exit 1; }; }
for kind in switch store controller engine; do user $kind; done

step 'the commands of the first program, from the README of the package'
awk '/^```sh$/ { on = 1; next } /^```$/ && on { exit } on' \
  "$root/usr/share/doc/stateplane/README.md" > "$root/tmp/work/commands"
count=$(wc -l < "$root/tmp/work/commands")
[ "$count" -gt 5 ] && [ "$count" -le 10 ] || { echo "$count commands"; exit 1; }
start=$(date +%s)
inside sh -c 'cd /tmp/work && exec bash -eu commands' | tee "$work/said"
grep -q 'UdpNoPorts  *5 ' "$work/said" || { echo 'not 5 before the failure'; exit 1; }
grep -q 'UdpNoPorts  *8 ' "$work/said" || { echo 'not 8 after the failure'; exit 1; }
echo "$count commands, $(($(date +%s) - start)) s"

step 'the files that init wrote, as services'
cp "$root"/tmp/work/first/run/* "$root/etc/stateplane/"
inside systemd-analyze verify --man=no stateplane-switch@1.service \
  stateplane-store@10.10.0.11.service stateplane-controller@10.10.0.20.service \
  stateplane-engine@views.service

step 'the demo'
inside sh -c 'cd /tmp/work && exec stateplane lab demo' | tee "$work/said"

step 'purge'
apt purge stateplane stateplane-dbgsym
listing > "$work/after"
diff "$work/before" "$work/after" || { echo 'purge leaves the files above'; exit 1; }
step 'passed'
