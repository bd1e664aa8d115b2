#!/bin/sh
# New connections a second that Linux's NAT sustains to one server through few public ports, with the
# timeouts of RFC 5382 REQ-5 (as `first_lease = "nat-dependent"` has them): run as root,
#
#   sh lab/linux/ports.sh [SECONDS [PORTS [CONNECTIONS AT A TIME [MILLISECONDS THAT ONE LASTS]]]]
#
# It prints the rate of each twelfth of the time; it has settled when that no longer changes.
# crates/systems/replication/store/tests/port_rate.rs does the same with the store, in virtual time;
# the defaults are its numbers: 64 ports, 256 connections at a time, 20 ms between handshake and end.
set -e
seconds=${1:-60}
ports=${2:-64}
clients=${3:-256}
lasts=${4:-20}
last=$((1024 + ports - 1))
id=$$
inside=ports-in-$id
nat=ports-nat-$id
outside=ports-out-$id

finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  for name in "$inside" "$nat" "$outside"; do
    ip netns delete "$name" 2>/dev/null || true
  done
}
trap finish EXIT INT TERM

for name in "$inside" "$nat" "$outside"; do
  ip netns add "$name"
  ip -n "$name" link set lo up
done
ip link add eth0 netns "$inside" type veth peer name eth0 netns "$nat"
ip link add eth0 netns "$outside" type veth peer name eth1 netns "$nat"
ip -n "$inside" address add 10.0.0.2/24 dev eth0
ip -n "$nat" address add 10.0.0.1/24 dev eth0
ip -n "$nat" address add 198.51.100.1/24 dev eth1
ip -n "$outside" address add 198.51.100.2/24 dev eth0
ip -n "$inside" link set eth0 up
ip -n "$nat" link set eth0 up
ip -n "$nat" link set eth1 up
ip -n "$outside" link set eth0 up
ip -n "$inside" route add default via 10.0.0.1
ip -n "$outside" route add 203.0.113.1 via 198.51.100.1

ip netns exec "$nat" nft -f - <<RULES
table ip nat {
  chain outbound {
    type nat hook postrouting priority srcnat;
    oifname "eth1" ip protocol tcp snat to 203.0.113.1:1024-$last
  }
}
table ip filter {
  chain forward {
    type filter hook forward priority filter;
    ct state invalid drop
  }
}
RULES
ip netns exec "$nat" sh -c '
  cd /proc/sys/net
  echo 1 >ipv4/ip_forward
  cd netfilter
  echo 0 >nf_conntrack_tcp_loose
  for state in established fin_wait close_wait; do
    echo 7440 >nf_conntrack_tcp_timeout_$state
  done
  for state in syn_sent syn_recv last_ack time_wait close; do
    echo 240 >nf_conntrack_tcp_timeout_$state
  done
'
# A host that opens hundreds of connections a second to one server runs out of ports of its own.
ip netns exec "$inside" sh -c '
  echo "1024 65535" >/proc/sys/net/ipv4/ip_local_port_range
  echo 1 >/proc/sys/net/ipv4/tcp_tw_reuse
'

ip netns exec "$outside" python3 -c '
import socket, threading
server = socket.create_server(("198.51.100.2", 80), backlog=4096)
def serve():
    while True:
        connection, _ = server.accept()
        try:
            connection.recv(1)
            connection.sendall(b"a")
            connection.recv(1)
        except OSError:
            pass
        connection.close()
for _ in range(256):
    threading.Thread(target=serve, daemon=True).start()
threading.Event().wait()
' &
server=$!
sleep 1

ip netns exec "$inside" python3 -c '
import socket, sys, threading, time
seconds, clients, lasts = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) / 1000
opened = [0] * clients
end = time.monotonic() + seconds
def client(number):
    while time.monotonic() < end:
        try:
            with socket.create_connection(("198.51.100.2", 80), timeout=8) as connection:
                opened[number] += 1
                connection.sendall(b"q")
                connection.recv(1)
                time.sleep(lasts)
        except OSError:
            pass
for number in range(clients):
    threading.Thread(target=client, args=(number,), daemon=True).start()
before = 0
for part in range(1, 13):
    time.sleep(max(0, end - seconds + part * seconds / 12 - time.monotonic()))
    now = sum(opened)
    print(f"part {part} of {seconds} s: {(now - before) * 12 / seconds:.0f} new connections a second", flush=True)
    before = now
' "$seconds" "$clients" "$lasts"
