#include "shell.p4"

@unit["bucket", 4] register<bit<32>>(64) first;

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<32> n = 0;

    action add() {
        n = n + 1;
    }

    apply {
        @apart {
            first.write(0, 1);
        }
        @atomic @apart {
            add();
        }
        @atomic @apart {
            if (n == 1) {
                return;
            }
            first.write(0, n);
        }
        @atomic @apart {
            @atomic {
                first.write(0, n);
            }
        }
        @atomic @apart @uses("bucket", n) {
            first.write(0, n);
        }
        @atomic @apart {
            for (bit<8> i = 0; i < 3; i = i + 1) {
                first.write(0, n);
            }
        }
    }
}

SWITCH(EmptyParser, MyIngress);
