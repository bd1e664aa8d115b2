#include "in_macro.p4i"
#define BROKEN(x) x + ;
const bit<8> a = BROKEN(1)
