#include "shell.p4"

struct s {
    bit<8> a;
    bit<16> a;
}

SWITCH(EmptyParser, NoIngress);
