// What packets that may wait do nevertheless.

#include "shell.p4"

@side_effects_wait
struct waiting_t {
    bool process;
}

struct waiting_metadata_t {
    @field_list(1)
    bit<8>    x;
    waiting_t waiting;
}

register<bit<8>>(4) state;
counter(4, CounterType.packets) packets;

parser P(packet_in packet, out headers_t hdr, inout waiting_metadata_t meta,
         inout standard_metadata_t std) {
    state start {
        transition accept;
    }
}

control Checksum(inout headers_t hdr, inout waiting_metadata_t meta) {
    apply {}
}

// Nothing calls these.
action unused() {
    clone(CloneType.I2E, 5);
}

control Unused(inout waiting_metadata_t meta) {
    apply {
        digest(1, meta.x);
    }
}

action remember(in bit<8> value) {
    state.write(1, value);
}

@side_effects_allowed
control Released(in waiting_metadata_t meta) {
    action tell() {
        digest(1, meta.x);
    }

    table t {
        actions = { tell; }
        default_action = tell();
    }

    apply {
        clone_preserving_field_list(CloneType.I2E, 5, 1);
        resubmit_preserving_field_list(1);
        t.apply();
    }
}

control MyIngress(inout headers_t hdr, inout waiting_metadata_t meta,
                  inout standard_metadata_t std) {
    Released() released;

    apply {
        state.write(0, 1);
        remember(2);
        if (!meta.waiting.process) {
            released.apply(meta);
        }
    }
}

@side_effects_allowed
control MyEgress(inout headers_t hdr, inout waiting_metadata_t meta,
                 inout standard_metadata_t std) {
    apply {
        recirculate_preserving_field_list(1);
        packets.count(0);
        state.write(2, meta.x);
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(P(), Checksum(), MyIngress(), MyEgress(), Checksum(), MyDeparser()) main;
