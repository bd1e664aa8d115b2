#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hash(meta.x, HashAlgorithm.crc16, 0, { hdr.h.a }, 8w16);
    }
}

SWITCH(EmptyParser, C);
