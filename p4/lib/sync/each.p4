// Repetition of a macro for each value of a message.

#ifndef STATEPLANE_SYNC_EACH_P4
#define STATEPLANE_SYNC_EACH_P4

#include "sync_message.p4"

#define SYNC_EACH_4(M) M(0) M(1) M(2) M(3)
#define SYNC_EACH_8(M) SYNC_EACH_4(M) M(4) M(5) M(6) M(7)
#define SYNC_EACH_16(M) SYNC_EACH_8(M) M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15)
#define SYNC_EACH_32(M) SYNC_EACH_16(M) M(16) M(17) M(18) M(19) M(20) M(21) M(22) M(23) \
    M(24) M(25) M(26) M(27) M(28) M(29) M(30) M(31)

// M(0) to M(SYNC_BATCH - 1), and an eighth of them, at least one.
#if SYNC_BATCH == 4
#define SYNC_EACH(M) SYNC_EACH_4(M)
#define SYNC_EIGHTH 1
#elif SYNC_BATCH == 8
#define SYNC_EACH(M) SYNC_EACH_8(M)
#define SYNC_EIGHTH 1
#elif SYNC_BATCH == 16
#define SYNC_EACH(M) SYNC_EACH_16(M)
#define SYNC_EIGHTH 2
#elif SYNC_BATCH == 32
#define SYNC_EACH(M) SYNC_EACH_32(M)
#define SYNC_EIGHTH 4
#else
#error "SYNC_BATCH, the most values of a message, is 4, 8, 16 or 32"
#endif

#endif
