# What conntrackd is told when VRRP makes this switch the master or a backup: $1 is its
# configuration, $2 the new part.
case "$2" in
master)
  conntrackd -C "$1" -R
  conntrackd -C "$1" -B
  ;;
backup)
  conntrackd -C "$1" -t
  conntrackd -C "$1" -n
  ;;
esac
