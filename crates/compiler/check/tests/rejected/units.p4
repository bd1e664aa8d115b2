#include "shell.p4"

@unit["bucket", 4] register<bit<32>>(64) first;
@unit["other", 4] register<bit<32>>(64) second;
@unit["other", 4] register<bit<32>>(32) shorter;
@unit["other", 8] register<bit<32>>(64) wider;
@unit["odd", 4] register<bit<32>>(30) odd;
@unit["none", 0] register<bit<32>>(64) none;
@unit(bucket, 4) register<bit<32>>(64) words;
@beside["first"] register<bit<32>>(64) nowhere;

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<32> bucket = 0;
    int<32> signed = 0;

    apply {
        @atomic @uses("buckets", bucket) {
            first.write(0, 1);
        }
        @atomic @uses("bucket") {
            first.write(0, 1);
        }
        @atomic @uses("bucket", bucket + 1) {
            first.write(0, 1);
        }
        @atomic @uses("bucket", missing, signed, meta, first) {
            first.write(0, 1);
        }
        @atomic @uses("bucket", bucket, bucket, bucket, bucket, bucket) {
            first.write(0, 1);
        }
        @uses("bucket", bucket) {
            first.write(0, 1);
        }
    }
}

SWITCH(EmptyParser, MyIngress);
