// Hash functions of sketches: multiply-shift on four 32-bit words (Thorup, High Speed Hashing for
// Integers and Strings, 3.5). For a random seed any two keys have independent, uniform values in
// the upper 33 bits, and functions of different numbers are independent, as CRCs with different
// initial values are not.

#ifndef STATEPLANE_SKETCH_P4
#define STATEPLANE_SKETCH_P4

#ifndef SKETCH_SEED
#define SKETCH_SEED 0x5374617465706c61
#endif

const bit<64> SKETCH_SEED_BITS = SKETCH_SEED;

// The coefficient of a number from 0 on: splitmix64, which compilers evaluate.
#define SKETCH_STEP(number) (SKETCH_SEED_BITS + ((number) + 1) * 64w0x9e3779b97f4a7c15)
#define SKETCH_FIRST(number) \
    ((SKETCH_STEP(number) ^ (SKETCH_STEP(number) >> 30)) * 64w0xbf58476d1ce4e5b9)
#define SKETCH_SECOND(number) \
    ((SKETCH_FIRST(number) ^ (SKETCH_FIRST(number) >> 27)) * 64w0x94d049bb133111eb)
#define SKETCH_COEFFICIENT(number) (SKETCH_SECOND(number) ^ (SKETCH_SECOND(number) >> 31))

// All 64 bits of a function's value: the upper ones are the hash. The addend is the last of the
// eight coefficients that each function has.
#define SKETCH_HASH(function, first, second, third, fourth) \
    ((bit<64>)(first) * SKETCH_COEFFICIENT(8 * (function)) \
        + (bit<64>)(second) * SKETCH_COEFFICIENT(8 * (function) + 1) \
        + (bit<64>)(third) * SKETCH_COEFFICIENT(8 * (function) + 2) \
        + (bit<64>)(fourth) * SKETCH_COEFFICIENT(8 * (function) + 3) \
        + SKETCH_COEFFICIENT(8 * (function) + 7))

#define SKETCH_HASH_OF_PAIR(function, first, second) \
    ((bit<64>)(first) * SKETCH_COEFFICIENT(8 * (function)) \
        + (bit<64>)(second) * SKETCH_COEFFICIENT(8 * (function) + 1) \
        + SKETCH_COEFFICIENT(8 * (function) + 7))

#define SKETCH_HASH_OF_WORD(function, word) \
    ((bit<64>)(word) * SKETCH_COEFFICIENT(8 * (function)) + SKETCH_COEFFICIENT(8 * (function) + 7))

// The upper bits of a value, 1 to 33.
#define SKETCH_UPPER(value, bits) ((bit<33>)((value) >> (64 - (bits))))

#endif
