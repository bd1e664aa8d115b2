#include "shell.p4"

enum bit<8> kind_t {
    one = 1,
    two = 2
}

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        kind_t kind = kind_t.one;
        switch (kind) {
            kind_t.one: { std.egress_spec = 1; }
            2: { std.egress_spec = 2; }
        }
    }
}

SWITCH(EmptyParser, C);
