// Type parameters, and `<` where it compares.
struct Pair<A, B> { A first; B second; }
extern Box<T> { Box(); Box(T t); T get<U>(in U u); abstract void set(inout T t); }
extern T id<T>(in T t);
T twice<T>(in T t) { return id<T>(id(t)); }
const Pair<bit<8>, Pair<bool, bit<4>>> nested = { 1, { true, 2 } };
control C<T>(inout T t)(Pair<bit<8>, bit<(4 + 4)>> p) {
    Box<bit<8>>(8w1) b = {
        void set(inout bit<8> t) { t = t >> 1 >> p.first; }
    };
    apply {
        bool less = p.first < p.second && p.second > p.first;
        bit<8> x = b.get<Pair<bit<8>, bit<8>>>({ 1, 2 });
        x = less ? x >> 1 : (bit<8>) nested.second.second;
        C<bit<8>>.apply(x);
    }
}
