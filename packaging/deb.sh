#!/usr/bin/env bash
# Makes Debian packages of the built binary: stateplane, and stateplane-dbgsym with its symbols.
#
# usage: packaging/deb.sh BINARY FOLDER
set -eu
binary=$1
folder=$2
cd "$(dirname "$0")/.."

command -v dpkg-deb >/dev/null || { echo 'stateplane: no dpkg-deb: packages are made on Debian and its like'; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
architecture=$(dpkg --print-architecture)
# Packages of one commit are the same whenever they are made.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)
  export SOURCE_DATE_EPOCH
fi
umask 022
rm -rf "$folder/root" "$folder/symbols"
mkdir -p "$folder/root/DEBIAN" "$folder/symbols/DEBIAN" "$folder/symbols/usr/lib"
packaging/install.sh "$binary" /usr "$folder/root"
mv "$folder/root/usr/lib/debug" "$folder/symbols/usr/lib/"
mkdir -p "$folder/symbols/usr/share/doc/stateplane-dbgsym"
install -m 0644 LICENSE "$folder/symbols/usr/share/doc/stateplane-dbgsym/copyright"

# The shared libraries that the binary needs, in the versions that it was linked with.
needs() {
  local scratch
  if command -v dpkg-shlibdeps >/dev/null; then
    scratch=$(mktemp -d)
    mkdir "$scratch/debian"
    printf 'Source: stateplane\n\nPackage: stateplane\nArchitecture: any\n' > "$scratch/debian/control"
    cp "$folder/root/usr/bin/stateplane" "$scratch/stateplane"
    (cd "$scratch" && dpkg-shlibdeps -O ./stateplane 2>/dev/null) | sed -n 's/^shlibs:Depends=//p'
    rm -rf "$scratch"
  else
    echo "libc6 (>= $(dpkg-query -W -f '${Version}' libc6 | sed 's/-.*//')), libgcc-s1"
  fi
}
control() {
  sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@NEEDS@/$(needs)/" \
    -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$2" | cut -f1)/" "packaging/debian/$1" > "$2/DEBIAN/control"
}
control control "$folder/root"
control control-dbgsym "$folder/symbols"
(cd "$folder/root" && find etc -type f | LC_ALL=C sort | sed 's#^#/#') > "$folder/root/DEBIAN/conffiles"
for script in postinst prerm postrm; do
  install -m 0755 "packaging/debian/$script" "$folder/root/DEBIAN"
done
for tree in root symbols; do
  (cd "$folder/$tree" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' \
    | LC_ALL=C sort -z | xargs -0 md5sum) > "$folder/$tree/DEBIAN/md5sums"
  find "$folder/$tree" -newermt "@$SOURCE_DATE_EPOCH" -print0 | xargs -0 touch -hd "@$SOURCE_DATE_EPOCH"
done
dpkg-deb --root-owner-group -Zxz --threads-max=2 --build "$folder/root" "$folder/stateplane_${version}_$architecture.deb"
# What is compressed already is not compressed again.
dpkg-deb --root-owner-group -Znone --build "$folder/symbols" "$folder/stateplane-dbgsym_${version}_$architecture.deb"
rm -rf "$folder/root" "$folder/symbols"
