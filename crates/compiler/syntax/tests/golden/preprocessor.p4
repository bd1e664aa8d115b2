#include "missing.p4"
#include "cycle.p4i"
