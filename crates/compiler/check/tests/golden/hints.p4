// Branches that few packets take.

#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (meta.flag) @unlikely {
            meta.x = 1;
        }
        if (meta.flag) @likely {
            meta.x = 2;
        }
        if (meta.flag) {
            meta.x = 3;
        } else @unlikely {
            meta.x = 4;
        }
        if (meta.flag) {
            meta.x = 5;
        } else @likely {
            meta.x = 6;
        }
        // Neither is less likely than the other.
        if (meta.flag) @unlikely {
            meta.x = 7;
        } else @unlikely {
            meta.x = 8;
        }
        // Always taken, whatever is said of it.
        if (8w1 == 1) @unlikely {
            meta.x = 9;
        }
        // No branch.
        @unlikely {
            meta.x = 10;
        }
    }
}

SWITCH(EmptyParser, C);
