// The v1model architecture: parser, checksum verification, ingress, traffic manager, egress,
// checksum update, deparser.
//
// In version 20180101, and so without a word about the version, the indices of registers,
// counters and meters are bit<32>. In version 20200408 they have a type of the program's
// choice, and there is a type PortId_t: define V1MODEL_VERSION before this file is included.

#ifndef _V1_MODEL_P4_
#define _V1_MODEL_P4_

#include "core.p4"

#ifndef V1MODEL_VERSION
#define V1MODEL_VERSION 20180101
#endif

const bit<32> __v1model_version = V1MODEL_VERSION;

match_kind {
    range, // from a lowest to a highest value, both included
    optional, // every bit, or none at all
    selector // an input of an action selector's hash; no part of the match
}

#if V1MODEL_VERSION >= 20200408
typedef bit<9> PortId_t;
#endif

// Data that switch and program exchange about a packet.
@metadata
@name("standard_metadata")
struct standard_metadata_t {
#if V1MODEL_VERSION >= 20200408
    PortId_t ingress_port; // where the packet came in
    PortId_t egress_spec; // where ingress wants it sent; see mark_to_drop
    PortId_t egress_port; // where it will leave; for egress to read
#else
    bit<9> ingress_port;
    bit<9> egress_spec;
    bit<9> egress_port;
#endif
    bit<32> instance_type; // how the packet came about: 0 received, else a copy
    bit<32> packet_length; // in bytes, as it came in

    // Queueing; for egress to read. Times in microseconds, depths in packets.
    @alias("queueing_metadata.enq_timestamp")
    bit<32> enq_timestamp;
    @alias("queueing_metadata.enq_qdepth")
    bit<19> enq_qdepth;
    @alias("queueing_metadata.deq_timedelta")
    bit<32> deq_timedelta;
    @alias("queueing_metadata.deq_qdepth")
    bit<19> deq_qdepth;

    // When ingress and egress processing began, in microseconds since the switch started.
    @alias("intrinsic_metadata.ingress_global_timestamp")
    bit<48> ingress_global_timestamp;
    @alias("intrinsic_metadata.egress_global_timestamp")
    bit<48> egress_global_timestamp;

    // Multicast: the group to copy to, 0 for none; and in egress, which copy this is.
    @alias("intrinsic_metadata.mcast_grp")
    bit<16> mcast_grp;
    @alias("intrinsic_metadata.egress_rid")
    bit<16> egress_rid;

    bit<1> checksum_error; // 1 once verify_checksum has found a wrong checksum
    error parser_error; // why the parser stopped; error.NoError if it accepted

    // The queue within the egress port.
    @alias("intrinsic_metadata.priority")
    bit<3> priority;
}

// Units of a counter.
enum CounterType {
    packets,
    bytes,
    packets_and_bytes
}

// Units of a meter.
enum MeterType {
    packets,
    bytes
}

// An array of counters that the program increments and the control plane reads.
extern counter
#if V1MODEL_VERSION >= 20200408
<I>
#endif
{
    counter(bit<32> size, CounterType type);

    // Counts this packet; without effect for an index outside the array.
#if V1MODEL_VERSION >= 20200408
    void count(in I index);
#else
    void count(in bit<32> index);
#endif
}

// One counter for each entry of the table whose property `counters` names it. It counts the
// packets that hit the entry by itself.
extern direct_counter {
    direct_counter(CounterType type);
    void count();
}

// Colours that a meter gives a packet (RFC 2697, RFC 2698).
#define V1MODEL_METER_COLOR_GREEN  0
#define V1MODEL_METER_COLOR_YELLOW 1
#define V1MODEL_METER_COLOR_RED    2

// An array of meters, whose rates the control plane sets.
extern meter
#if V1MODEL_VERSION >= 20200408
<I>
#endif
{
    meter(bit<32> size, MeterType type);

    // Marks this packet with a colour in `result`, which must be a bit<W> with W >= 2. For
    // an index outside the array the result is not specified.
#if V1MODEL_VERSION >= 20200408
    void execute_meter<T>(in I index, out T result);
#else
    void execute_meter<T>(in bit<32> index, out T result);
#endif
}

// One meter for each entry of the table whose property `meters` names it.
extern direct_meter<T> {
    direct_meter(MeterType type);

    // The colour of this packet; to be called only in an action of that table.
    void read(out T result);
}

// An array of values that outlive the packet. Read and write are atomic each by itself; an
// @atomic block makes them so together.
#if V1MODEL_VERSION >= 20200408
extern register<T, I>
#else
extern register<T>
#endif
{
    register(bit<32> size);

    // For an index outside the array the result is not specified.
    @noSideEffects
#if V1MODEL_VERSION >= 20200408
    void read(out T result, in I index);
#else
    void read(out T result, in bit<32> index);
#endif

    // Without effect for an index outside the array.
#if V1MODEL_VERSION >= 20200408
    void write(in I index, in T value);
#else
    void write(in bit<32> index, in T value);
#endif
}

// Actions with their arguments, shared by the entries of tables whose property
// `implementation` names it.
extern action_profile {
    action_profile(bit<32> size);
}

// A value from `lo` to `hi`, both included; not specified if `lo` is greater.
extern void random<T>(out T result, in T lo, in T hi);

// Sends `data` to the control plane, with the values that it has at the call. The receiver
// has no meaning. Only in ingress.
extern void digest<T>(in bit<32> receiver, in T data);

// The functions that hash and the checksum externs can compute.
enum HashAlgorithm {
    crc32,
    crc32_custom,
    crc16,
    crc16_custom,
    random,
    identity,
    csum16,
    xor16
}

@deprecated("pass standard_metadata to mark_to_drop")
extern void mark_to_drop();

// Sets egress_spec to the port that stands for dropping and mcast_grp to 0. A later
// assignment to either can still send the packet.
@pure
extern void mark_to_drop(inout standard_metadata_t standard_metadata);

// A hash of `data` in the range from `base` to `base + max - 1`; `base` if `max` is 0.
@pure
extern void hash<O, T, D, M>(out O result, in HashAlgorithm algo, in T base, in D data, in M max);

// An action profile with groups, of which a hash of the table's `selector` keys chooses one
// member.
extern action_selector {
    action_selector(HashAlgorithm algorithm, bit<32> size, bit<32> outputWidth);
}

// Place where a clone is made: of the packet as it came in, or of the packet as egress leaves it.
// Either clone goes to egress.
enum CloneType {
    I2E,
    E2E
}

@deprecated("call verify_checksum and update_checksum")
extern Checksum16 {
    Checksum16();
    bit<16> get<D>(in D data);
}

// Sets standard_metadata.checksum_error if `condition` holds and `checksum` is not that of
// `data`. Only in the VerifyChecksum control.
extern void verify_checksum<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);

// Sets `checksum` to that of `data` if `condition` holds. Only in the ComputeChecksum
// control.
@pure
extern void update_checksum<T, O>(
    in bool condition,
    in T data,
    inout O checksum,
    HashAlgorithm algo
);

// The same two with the payload behind `data`: all that the parser did not extract.
extern void verify_checksum_with_payload<T, O>(
    in bool condition,
    in T data,
    in O checksum,
    HashAlgorithm algo
);
@noSideEffects
extern void update_checksum_with_payload<T, O>(
    in bool condition,
    in T data,
    inout O checksum,
    HashAlgorithm algo
);

// Copies the packet as the control plane has set up for the session; the copy goes through
// egress without user metadata. The last clone of a control's run counts.
extern void clone(in CloneType type, in bit<32> session);

// The same, and the copy keeps the user metadata fields annotated @field_list(index).
extern void clone_preserving_field_list(in CloneType type, in bit<32> session, bit<8> index);

// Starts the packet over in the parser, as it came in, once ingress has ended; it keeps the
// user metadata fields annotated @field_list(index).
extern void resubmit_preserving_field_list(bit<8> index);

// Starts the packet over in the parser, as the deparser leaves it; it keeps the user metadata
// fields annotated @field_list(index). Only in egress.
extern void recirculate_preserving_field_list(bit<8> index);

// Like the three above, with the fields of the user metadata that `data` lists.
@deprecated("call resubmit_preserving_field_list")
extern void resubmit<T>(in T data);
@deprecated("call recirculate_preserving_field_list")
extern void recirculate<T>(in T data);
@deprecated("call clone_preserving_field_list")
extern void clone3<T>(in CloneType type, in bit<32> session, in T data);

// Cuts the packet to at most `length` bytes when it leaves.
extern void truncate(in bit<32> length);

// State that `check` always holds: to be checked at run time, or taken for granted by a
// verifier. The two run alike.
extern void assert(in bool check);
extern void assume(in bool check);

// Writes a message to the switch's log; each {} in it stands for the next member of `data`.
extern void log_msg(string msg);
extern void log_msg<T>(string msg, in T data);

// The blocks that a program supplies. H is a struct of headers, M one of metadata.
parser Parser<H, M>(
    packet_in b,
    out H parsedHdr,
    inout M meta,
    inout standard_metadata_t standard_metadata
);

// Calls of verify_checksum and verify_checksum_with_payload only.
control VerifyChecksum<H, M>(inout H hdr, inout M meta);

@pipeline
control Ingress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t standard_metadata);

@pipeline
control Egress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t standard_metadata);

// Calls of update_checksum and update_checksum_with_payload only.
control ComputeChecksum<H, M>(inout H hdr, inout M meta);

// Calls of packet_out.emit only.
@deparser
control Deparser<H>(packet_out b, in H hdr);

package V1Switch<H, M>(
    Parser<H, M> p,
    VerifyChecksum<H, M> vr,
    Ingress<H, M> ig,
    Egress<H, M> eg,
    ComputeChecksum<H, M> ck,
    Deparser<H> dep
);

#if V1MODEL_VERSION != 20180101 && V1MODEL_VERSION != 20200408
#error "there is no such V1MODEL_VERSION: 20180101 and 20200408 are known"
#endif

#endif
