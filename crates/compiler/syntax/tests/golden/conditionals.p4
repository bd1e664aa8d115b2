#define VERSION 3
#if VERSION >= 2 && defined(VERSION)
const bit<8> a = VERSION;
#elif UNKNOWN
const bit<8> never = ;
#else
const bit<8> neither = ;
#endif
#endif
#ifdef VERSION
#error no version please
#define VERSION 4
#frob
