// Generic functions and types, specialised where they are used.
#include "shell.p4"

struct pair_t<A, B> {
    A first;
    B second;
}

header wrapper_t<T> {
    T value;
}

T pick<T>(in bool condition, in T left, in T right) {
    if (condition) {
        return left;
    } else {
        return right;
    }
}

pair_t<B, A> swap<A, B>(in pair_t<A, B> pair) {
    return { pair.second, pair.first };
}

void twice<T>(inout T first, out T second) {
    second = first;
    first = pick(true, second, second);
}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        meta.x = pick(meta.flag, meta.x, 3);
        meta.y = pick(meta.flag, 16w1, meta.y);
        meta.y = pick<bit<16>>(meta.flag, 1, 2);
        hdr.h = pick(meta.flag, hdr.g, { 1, 2, 3 });
        pair_t<bit<8>, bool> p = { meta.x, meta.flag };
        pair_t<bool, bit<8>> q = swap(p);
        meta.flag = q.first;
        wrapper_t<bit<8>> w;
        w.setValid();
        w.value = q.second;
        twice(meta.x, w.value);
    }
}

SWITCH(EmptyParser, C);
