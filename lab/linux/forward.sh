# Makes the node a NAT by the rules in $1, and waits: with the process the rules would stay,
# so they are made anew at each start.
set -e
nft flush ruleset
nft -f "$1"
# A connection that is taken over has no window here yet.
echo 1 >/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal
# Nothing is taken for a known connection by its looks.
echo 0 >/proc/sys/net/netfilter/nf_conntrack_tcp_loose
conntrack -F >/dev/null 2>&1 || true
echo ready
exec sleep 100000
