// The detector for two tenants, whose sketches are kept sooner than those of sixteen.
#define SNAPSHOT_KEYS 2
#include "heavy_hitter.p4"
