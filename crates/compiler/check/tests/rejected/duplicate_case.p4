#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        switch (meta.x) {
            1: { meta.y = 1; }
            2:
            1: { meta.y = 2; }
        }
    }
}

SWITCH(EmptyParser, C);
