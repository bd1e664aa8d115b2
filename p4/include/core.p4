// The core library of P4-16 (language specification 1.2.5, appendix D): what every program
// may use whatever its architecture.

#ifndef _CORE_P4_
#define _CORE_P4_

// The errors that the language itself raises. Programs may add their own.
error {
    NoError, // nothing went wrong
    PacketTooShort, // extract or lookahead ran past the end of the packet
    NoMatch, // no case of a select matched
    StackOutOfBounds, // a header stack was used past its last element
    HeaderTooShort, // a varbit field was given more bits than it can hold
    ParserTimeout, // the parser took too many steps
    ParserInvalidArgument // a parser operation got a value that it does not support
}

// The packet as the parser sees it: a run of bits with a cursor in it.
extern packet_in {
    // Fills a header of fixed size from the bits at the cursor, makes it valid, and moves the
    // cursor past them. Raises PacketTooShort or StackOutOfBounds.
    void extract<T>(out T hdr);

    // The same for a header with one varbit field, which takes `variableFieldSizeInBits`
    // bits. Also raises HeaderTooShort, and ParserInvalidArgument for a size that the target
    // cannot handle.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);

    // The bits at the cursor, read as a T; the cursor stays. Raises PacketTooShort.
    T lookahead<T>();

    // Moves the cursor. Raises PacketTooShort.
    void advance(in bit<32> sizeInBits);

    // The length of the packet in bytes. A target need not have it.
    bit<32> length();
}

// The packet that a deparser builds.
extern packet_out {
    // Appends a header if it is valid; of a stack, union or struct, every valid header in it
    // in order.
    void emit<T>(in T hdr);
}

// Raises `toSignal` and leaves for the parser's reject state unless `check` holds.
extern void verify(in bool check, in error toSignal);

// The action that does nothing; the default of a table that names no other.
@noWarn("unused")
action NoAction() { }

// How a table compares a key with its entries. Architectures may add their own ways.
match_kind {
    exact, // every bit
    ternary, // the bits under the entry's mask
    lpm // the entry's leading bits; the longest such entry wins
}

// Stops the compilation with `message` if `check`, which must be known at compile time, is
// false. The value is `check`, so that it can stand in a constant declaration.
extern bool static_assert(bool check, string message);

// The same with a message of the compiler's own.
extern bool static_assert(bool check);

#endif
