// Instances of packages of another architecture.
struct data_t { bit<8> x; }
struct other_t { bit<16> y; }
parser Parse<H>(out H headers);
control Work<H>(inout H headers);
control Rest(inout data_t headers, in bit<8> a, in bit<8> b = 0);
control general<H>(inout H headers) { apply {} }
control rests(inout data_t headers, in bit<8> a) { apply {} }
package Part<H>(Parse<H> parse);
package Whole<H>(Part<H> part, Work<H> work, Rest rest = rests());
package Odd(tuple<bool> pair, Part<data_t> part);
package Lacking<H, M>(Work<H> work = general<H>());

parser parses(out data_t headers) {
    state start { transition accept; }
}
control works(inout data_t headers) { apply {} }
control others(inout other_t headers) { apply {} }
control reads(in data_t headers) { apply {} }

Part(parses()) part;
Part<other_t>(parses()) another;
Part(works()) control_as_parser;
Whole(part, others()) types;
Whole(part, reads()) directions;
Whole(part, part) package_as_control;
Whole(part, works(), 3) number_as_control;
Whole(part, general(), rests()) inferred;
Odd(works(), part) control_as_value;
Odd({ true, false }, part) count;
Odd({ true }, another_part()) unknown;
Lacking() lacking;
Whole<bit<8>>(part, works()) type_arguments;
Whole<data_t, data_t>(part, works()) type_argument_count;
Part(parses()()) twice;

Whole(part, works()) main = {
    void run() {}
};
