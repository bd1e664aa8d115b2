"""The NAT: the control plane makes a mapping for each flow of which a digest tells."""

import p4runtime_sh.shell as sh
from controlled import ControlledTest
from ptf.testutils import (
    send_packet,
    simple_tcp_packet,
    simple_udp_packet,
    verify_no_other_packets,
    verify_packet,
)

PUBLIC = "192.0.2.1"


class NatTest(ControlledTest):
    def setUp(self):
        super().setUp()
        digest = sh.DigestEntry("new_flow_t")
        digest.max_list_size = 1
        digest.ack_timeout_ns = 10**9
        digest.insert()
        # A second one would take lists from the first.
        self.digests = sh.DigestList()
        self.next_port = 20000

    def learn(self):
        """Makes mappings for the flows that the switch tells of; how many they are."""
        flows = []
        self.digests.sniff(lambda one: flows.extend(one.digest.data), timeout=1)
        for flow in flows:
            addr, port, protocol = [
                str(int.from_bytes(member.bitstring, "big")) for member in flow.struct.members
            ]
            public = str(self.next_port)
            self.next_port += 1
            self.insert(
                "outbound",
                {"hdr.ipv4.src_addr": addr, "src_port": port, "hdr.ipv4.protocol": protocol},
                "to_outside",
                addr=PUBLIC,
                port=public,
            )
            self.insert(
                "inbound",
                {"hdr.ipv4.dst_addr": PUBLIC, "dst_port": public, "hdr.ipv4.protocol": protocol},
                "to_inside",
                addr=addr,
                port=port,
            )
        return len(flows)


class BothWays(NatTest):
    def runTest(self):
        for make, source, target in (
            (simple_tcp_packet, "tcp_sport", "tcp_dport"),
            (simple_udp_packet, "udp_sport", "udp_dport"),
        ):
            public = self.next_port
            out = {"ip_dst": "198.51.100.7", target: 80}
            inside = make(ip_src="10.0.0.5", **{source: 5000}, **out)
            send_packet(self, 0, inside)
            assert self.learn() == 1
            send_packet(self, 0, inside)
            verify_packet(self, make(ip_src=PUBLIC, **{source: public}, **out), 1)
            back = {"ip_src": "198.51.100.7", source: 80}
            send_packet(self, 1, make(ip_dst=PUBLIC, **{target: public}, **back))
            verify_packet(self, make(ip_dst="10.0.0.5", **{target: 5000}, **back), 0)
        verify_no_other_packets(self)


class Unknown(NatTest):
    def runTest(self):
        send_packet(self, 1, simple_tcp_packet(ip_dst=PUBLIC, tcp_dport=20000))
        verify_no_other_packets(self)
        assert self.learn() == 0
