#include "shell.p4"

header_union u {
    h_t h;
    bit<8> b;
}

SWITCH(EmptyParser, NoIngress);
