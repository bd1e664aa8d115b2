# Starts conntrackd with the configuration $1. One that was killed leaves its lock and its socket,
# $2 with `.lock` and `.ctl` behind, and the next would not start.
rm -f "$2.lock" "$2.ctl"
exec conntrackd -C "$1"
