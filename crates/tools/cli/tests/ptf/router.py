"""The router: routes by longest prefix, with counters, and packets that it drops."""

import p4runtime_sh.shell as sh
from controlled import ControlledTest
from ptf.testutils import (
    send_packet,
    simple_tcp_packet,
    simple_udp_packet,
    verify_no_other_packets,
    verify_packet,
)

ROUTER = ["00:aa:00:00:00:00", "00:aa:00:00:00:01", "00:aa:00:00:00:02"]
HOST = ["00:bb:00:00:00:00", "00:bb:00:00:00:01", "00:bb:00:00:00:02"]


class RouterTest(ControlledTest):
    def route(self, prefix, port):
        return self.insert(
            "routes",
            {"hdr.ipv4.dst_addr": prefix},
            "route",
            port=str(port),
            src_addr=ROUTER[port],
            dst_addr=HOST[port],
        )

    def routed(self, make, port, ttl=64, **fields):
        sent = make(eth_dst=ROUTER[0], eth_src=HOST[0], ip_ttl=ttl, **fields)
        expected = make(eth_dst=HOST[port], eth_src=ROUTER[port], ip_ttl=ttl - 1, **fields)
        send_packet(self, 0, sent)
        verify_packet(self, expected, port)


class LongestPrefix(RouterTest):
    def runTest(self):
        self.route("10.0.0.0/8", 1)
        narrow = self.route("10.1.0.0/16", 2)
        self.routed(simple_tcp_packet, 1, ip_dst="10.2.3.4")
        self.routed(simple_udp_packet, 2, ip_dst="10.1.3.4")
        narrow.action["port"] = "1"
        narrow.action["src_addr"] = ROUTER[1]
        narrow.action["dst_addr"] = HOST[1]
        narrow.modify()
        self.routed(simple_udp_packet, 1, ip_dst="10.1.3.4")
        narrow.delete()
        self.routed(simple_tcp_packet, 1, ip_dst="10.1.9.9", pktlen=1000)
        verify_no_other_packets(self)


class Counted(RouterTest):
    def runTest(self):
        self.route("10.0.0.0/8", 1)
        for _ in range(5):
            self.routed(simple_tcp_packet, 1, ip_dst="10.2.3.4")
        hits = sh.DirectCounterEntry("route_hits")
        hits.table_entry.match["hdr.ipv4.dst_addr"] = "10.0.0.0/8"
        (counted,) = hits.read()
        assert counted.packet_count == 5, counted
        assert counted.byte_count == 500, counted


class Dropped(RouterTest):
    def runTest(self):
        self.route("10.0.0.0/8", 1)
        before = list(sh.CounterEntry("expired").read())[0].packet_count
        send_packet(self, 0, simple_tcp_packet(ip_dst="11.0.0.1"))
        send_packet(self, 0, simple_tcp_packet(ip_dst="10.0.0.1", ip_ttl=1))
        damaged = simple_tcp_packet(ip_dst="10.0.0.1")
        damaged["IP"].chksum = 1
        send_packet(self, 0, damaged)
        verify_no_other_packets(self)
        after = list(sh.CounterEntry("expired").read())[0].packet_count
        assert after == before + 1, (before, after)
        self.routed(simple_tcp_packet, 1, ip_dst="10.0.0.1", ttl=2)
