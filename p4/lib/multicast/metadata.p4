// Data that the blocks of the library and the program exchange about a packet.

#ifndef STATEPLANE_MULTICAST_METADATA_P4
#define STATEPLANE_MULTICAST_METADATA_P4

const bit<8> MULTICAST_FIELD_LIST = 4;

// A group as the switch has it.
struct multicast_group_t {
    // Place in registers.
    bit<32> at;
    // Number of this switch among the group's members.
    bit<8> member;
    bit<16> longest;
    bit<32> incarnation;
    bit<32> promised;
    // It leads in the epoch that it promised (rule 9).
    bool leads;
    bit<32> base;
    bit<32> base_term;
    bit<32> end;
    bit<32> commit;
    // Up to which index its leader is done (rule 24).
    bit<32> done;
    bit<32> last_term;
    bit<64> last_time;
    bit<64> clock;
}

// An entry of the log, and what its leader knows of it.
struct multicast_entry_t {
    bit<32> at;
    bit<32> index;
    bit<32> term;
    bit<64> timestamp;
    // Session, lane and number, one behind the other; 0 of a no-op.
    bit<64> id;
    bit<32> destinations;
    bit<48> sender;
    // Groups that decided and that are done, bit by bit (rules 13, 24).
    bit<32> decided;
    bit<32> done;
    bit<1> voided;
    bit<64> final;
    bit<8> final_group;
}

struct multicast_metadata_t {
    // For the program: forward the packet by its IPv4 destination.
    bool forward;

    // The rest is the library's own. Of a copy that is held: the entry, its number among the
    // copies of the slot, and how often it came back.
    @field_list(MULTICAST_FIELD_LIST)
    bit<32> held_index;
    @field_list(MULTICAST_FIELD_LIST)
    bit<32> held_term;
    @field_list(MULTICAST_FIELD_LIST)
    bit<8> held_copy;
    @field_list(MULTICAST_FIELD_LIST)
    bit<8> attempt;
    // 1 of such a copy; a message to the switch itself comes back with 0.
    @field_list(MULTICAST_FIELD_LIST)
    bit<1> held;
    // 1 of a PROP that comes back since the entry behind its own came before it (rule 3).
    @field_list(MULTICAST_FIELD_LIST)
    bit<1> joins;
    // This packet is such a one.
    bool joining;
    // How often the packet came back at once.
    @field_list(MULTICAST_FIELD_LIST)
    bit<8> passes;
    // The packet goes to the switch itself.
    bool loops;
    // The packet is to be held as it came.
    bool hold;
    // The packet as it came is to come back at once: it has more to tell than one message.
    bool again;
    bit<48> now;
    bit<32> own_address;
    // The frame has the payload of the entry at hand; its bytes as it came.
    bool bears;
    bit<16> payload;
    // Whom copies reach, and their types; those of receivers may bear the payload.
    bit<3> to;
    bit<8> leader_type;
    // Timestamp that a START to them tells, 0 for none.
    bit<64> leader_time;
    bit<8> receiver_type;
    bool receiver_payload;
    // Where a single message goes.
    bool sends;
    bit<32> destination;
    bit<16> destination_port;
    multicast_group_t group;
    multicast_entry_t entry;
}

#endif
