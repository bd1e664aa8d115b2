#include "shell.p4"

@side_effects_wait
struct waiting_t {
    bool process;
}

struct waiting_metadata_t {
    @field_list(1)
    bit<8>       x;
    waiting_t    waiting;
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

// Also called from egress.
action remember(in bit<8> value) {
    state.write(1, value);
}

void again() {
    resubmit_preserving_field_list(1);
}

control Inner(inout waiting_metadata_t meta) {
    apply {
        clone_preserving_field_list(CloneType.I2E, 5, 1);
    }
}

@side_effects_allowed
control Vouched(inout waiting_metadata_t meta) {
    Inner() inner;

    action tell() {
        digest(1, meta.x);
    }

    table t {
        actions = { tell; }
        default_action = tell();
    }

    apply {
        clone(CloneType.I2E, 5);
        t.apply();
        // Inner itself is not annotated.
        inner.apply(meta);
    }
}

control MyIngress(inout headers_t hdr, inout waiting_metadata_t meta,
                  inout standard_metadata_t std) {
    Vouched() vouched;
    Inner() first;
    Inner() second;

    action tell() {
        digest(1, meta.x);
    }

    table t {
        key = { meta.x : exact; }
        actions = { tell; NoAction; }
        default_action = NoAction();
    }

    apply {
        vouched.apply(meta);
        first.apply(meta);
        second.apply(meta);
        t.apply();
        if (meta.waiting.process) {
            clone(CloneType.I2E, 5);
            again();
        }
        state.write(0, 1);
        remember(2);
    }
}

control MyEgress(inout headers_t hdr, inout waiting_metadata_t meta,
                 inout standard_metadata_t std) {
    bit<8> value;

    apply {
        recirculate_preserving_field_list(1);
        clone(CloneType.E2E, 5);
        state.read(value, 0);
        packets.count(0);
        @atomic {
            state.write(2, value);
        }
        remember(value);
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(P(), Checksum(), MyIngress(), MyEgress(), Checksum(), MyDeparser()) main;
