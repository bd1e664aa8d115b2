// Objects of externs of another architecture.
extern Plain {
    Plain();
    bit<8> get();
}
extern Value<T> {
    Value(T first);
    abstract T next(in T last);
    abstract void done();
}
extern Twice {
    Twice(bit<8> a);
    Twice(bit<8> a);
    void f(bit<8> a);
    void f(bit<8> a);
}
control Any();
extern Holder {
    Holder(Any any);
}
extern Two {
    Two();
    void put<T>(out T first);
    void put<T>(out T second);
}
extern Cell<T> {
    Cell();
    void set(in T value);
}
typedef Cell<bit<8>> ByteCell;
package Empty();
extern Cell<T> made<T>(T value);

control takes()(Value<bit<8>> v) { apply {} }
control holds(inout bit<8> x)(Cell<bit<8>> cell) { apply {} }

control c(inout bit<8> x) {
    Plain() one;
    Plain() two;
    Value(8w1) no_block;
    Value(8w1) lacks = {
        bit<8> next(in bit<8> last) { return last; }
    };
    Value(8w1) type = {
        bit<8> next(in bit<16> last) { return 1; }
        void done() {}
    };
    Value(8w1) direction = {
        bit<8> next(inout bit<8> last) { return 1; }
        void done() {}
    };
    Value(8w1) result = {
        bit<16> next(in bit<8> last) { return 1; }
        void done() {}
    };
    Value(8w1) count = {
        bit<8> next(in bit<8> last, in bit<8> more) { return 1; }
        void done() {}
    };
    Plain() no_such = {
        bit<8> get() { return 1; }
    };
    takes() block = {};
    takes(Value(8w2)) argument;
    Empty() package_here;
    ByteCell<bit<8>>() alias;
    Cell<string>() texts;
    Cell<Cell<bit<8>>>() cells;
    holds(made(x)) from_packet;
    Two() several;
    apply {
        one = two;
        several.put(x);
    }
}
