#include "shell.p4"

control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hash(meta.flag, HashAlgorithm.crc16, 16w0, { hdr.h.a }, 16w8);
    }
}

SWITCH(EmptyParser, C);
