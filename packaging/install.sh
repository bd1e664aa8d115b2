#!/usr/bin/env bash
# Installs the built binary with all that belongs to it: `make install` and `make deb` call this.
#
# usage: packaging/install.sh BINARY PREFIX [DESTDIR]
#
# BINARY is stripped on the way; its symbols go to PREFIX/lib/debug, where debuggers look for them.
# Files below /etc/stateplane that are there already stay as they are.
set -eu
binary=$1
prefix=$2
root=${3:-}
cd "$(dirname "$0")/.."

bin=$root$prefix/bin
debug=$root$prefix/lib/debug$prefix/bin
share=$root$prefix/share
doc=$share/doc/stateplane
etc=$root/etc/stateplane

install -d "$bin" "$debug" "$etc" "$share/man/man1" "$doc"
objcopy --only-keep-debug --compress-debug-sections "$binary" "$debug/stateplane.debug"
chmod 0644 "$debug/stateplane.debug"
strip --strip-unneeded -o "$bin/stateplane" "$binary"
objcopy --add-gnu-debuglink="$debug/stateplane.debug" "$bin/stateplane"
chmod 0755 "$bin/stateplane"

# Man pages and completions are made by the command itself.
"$binary" manual "$share/man/man1"
gzip -9nf "$share/man/man1"/stateplane*.1
case $prefix in
  /usr) zsh=zsh/vendor-completions ;;
  *) zsh=zsh/site-functions ;;
esac
complete() {
  install -d "$(dirname "$share/$2")"
  "$binary" completions "$1" > "$share/$2"
  chmod 0644 "$share/$2"
}
complete bash bash-completion/completions/stateplane
complete zsh "$zsh/_stateplane"
complete fish fish/vendor_completions.d/stateplane.fish

units=$root$prefix/lib/systemd/system
install -d "$units" "$root$prefix/lib/sysusers.d"
for unit in packaging/systemd/*.service; do
  sed "s#/usr/bin/stateplane#$prefix/bin/stateplane#" "$unit" > "$units/${unit##*/}"
  chmod 0644 "$units/${unit##*/}"
done
install -m 0644 packaging/sysusers.conf "$root$prefix/lib/sysusers.d/stateplane.conf"
for file in packaging/etc/*.env; do
  [ -e "$etc/${file##*/}" ] || install -m 0644 "$file" "$etc"
done

# The lab's networks and the applications that run in them, and the examples of the pages.
copy() {
  (cd "$1" && find . -type f ! -path '*/__pycache__/*' -print0) | while IFS= read -rd '' file; do
    mode=0644
    [ ! -x "$1/$file" ] || mode=0755
    install -D -m "$mode" "$1/$file" "$2/$file"
  done
}
copy lab "$share/stateplane/lab"
copy apps "$share/stateplane/apps"
copy docs/examples "$share/stateplane/examples"

install -m 0644 README.md "$doc"
install -m 0644 LICENSE "$doc/copyright"
gzip -9nc CHANGELOG.md > "$doc/changelog.gz"
chmod 0644 "$doc/changelog.gz"
