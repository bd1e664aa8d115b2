"""The hash functions of the programs: `p4/lib/sketch.p4` and the names of `p4/lib/dns.p4`."""

SEED = 0x5374617465706C61
"""The seed of programs that are compiled without `-D SKETCH_SEED`."""

_MASK = (1 << 64) - 1
_NAMES = 512


def coefficient(number: int, seed: int = SEED) -> int:
    """The coefficient of a number, from 0 on: splitmix64."""
    mixed = (seed + (number + 1) * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)


def words(function: int, *values: int, seed: int = SEED) -> int:
    """All 64 bits of a function's value for up to four words of 32 bits: SKETCH_HASH and its like."""
    products = (
        coefficient(8 * function + at, seed) * value for at, value in enumerate(values)
    )
    return (sum(products) + coefficient(8 * function + 7, seed)) & _MASK


def upper(value: int, bits: int) -> int:
    """The upper bits of a value, 1 to 33: SKETCH_UPPER."""
    return value >> (64 - bits)


def name(text: str, seed: int = SEED) -> int:
    """The hash of a DNS name such as `www.example.com`, whose letters count as small ones."""
    factor = coefficient(_NAMES + 1, seed) | 1
    value = coefficient(_NAMES, seed)
    labels = [label for label in text.rstrip(".").split(".") if label]
    for label in labels:
        octets = label.encode("ascii", "surrogateescape")
        for octet in bytes([len(octets)]) + octets.lower():
            value = ((value ^ octet) * factor) & _MASK
            value ^= value >> 32
    return value


def halves(value: int) -> tuple[int, int]:
    """The two words of a value of 64 bits, the upper one first."""
    return value >> 32, value & 0xFFFFFFFF
