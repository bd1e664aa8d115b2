"""The firewall: rules for what begins inside, and state for what comes back."""

import p4runtime_sh.shell as sh
from controlled import ControlledTest
from ptf.testutils import send_packet, simple_tcp_packet, verify_no_other_packets, verify_packet

INSIDE, OUTSIDE = "10.0.0.5", "198.51.100.7"


def there(port, flags="S", dport=80):
    return simple_tcp_packet(
        ip_src=INSIDE, ip_dst=OUTSIDE, tcp_sport=port, tcp_dport=dport, tcp_flags=flags
    )


def back(port, flags="SA"):
    return simple_tcp_packet(
        ip_src=OUTSIDE, ip_dst=INSIDE, tcp_sport=80, tcp_dport=port, tcp_flags=flags
    )


class FirewallTest(ControlledTest):
    def allow(self, ports):
        return self.insert(
            "rules",
            {"hdr.ipv4.src_addr": "10.0.0.0&&&255.0.0.0", "hdr.tcp.dst_port": ports},
            "allow",
            priority=10,
        )

    def passes(self, packet, source):
        send_packet(self, source, packet)
        verify_packet(self, packet, 1 - source)

    def stops(self, packet, source):
        send_packet(self, source, packet)
        verify_no_other_packets(self)


class OnlyWhatBeganInside(FirewallTest):
    def runTest(self):
        self.allow("80..90")
        self.stops(back(4000), 1)
        self.passes(there(4000), 0)
        self.passes(back(4000), 1)
        self.passes(there(4000, "A"), 0)
        self.stops(back(4001), 1)


class RulesHavePriorities(FirewallTest):
    def runTest(self):
        self.allow("80..90")
        deny = self.insert(
            "rules", {"hdr.tcp.dst_port": "85..85"}, "deny", priority=20
        )
        self.passes(there(4100, dport=84), 0)
        self.stops(there(4101, dport=85), 0)
        deny.delete()
        self.passes(there(4101, dport=85), 0)
        self.stops(there(4102, dport=91), 0)
        counted = [hits.packet_count for hits in sh.DirectCounterEntry("rule_hits").read()]
        assert counted == [2], counted
