// Nothing is wrong but that the architecture is another one.
extern Cell<T> {
    Cell(T first);
    void set(in T value);
    @optional abstract void changed(in T value, @optional in T before);
    abstract T next();
}
extern void act<T>(in T value, string name);
extern Cell<T> of_value<T>(T value);
struct data_t { bit<8> x; }
parser Parse<H>(out H headers);
control Work<H>(inout H headers, in bit<8> port = 0);
control general<H>(inout H headers) { apply {} }
package Part<H>(Parse<H> parse, Work<_> work);
package Whole<H>(Part<H> part, Work<H> first, Work<H> second = general<H>());

parser parses(out data_t headers) {
    state start { transition accept; }
}
control works(inout data_t headers)(bit<8> n) {
    Cell(8w1) cell = {
        bit<8> next() { return n; }
        void changed(in bit<8> value) {}
    };
    Cell<_>(16w1) wide = {
        bit<16> next() { return 1; }
    };
    apply {
        cell.set(headers.x);
        act(8w1, "one");
        act<bit<8>>(1, "one");
    }
}

Part(parses(), works(1)) part;
Whole(part, works(2), works(3)) other;
Whole<_>(part, general()) main;
