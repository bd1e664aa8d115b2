// Numbers that count up and begin again after the highest (RFC 1982).

#ifndef STATEPLANE_SERIAL_P4
#define STATEPLANE_SERIAL_P4

// True if `number` was counted up from `other` by less than 2^31 steps, and at least one.
#define IS_NEWER(number, other) \
    ((number) != (other) && ((bit<32>)((number) - (other)))[31:31] == 0)

#endif
