#include "shell.p4"

struct s {
    bit<8>[4] a;
}

SWITCH(EmptyParser, NoIngress);
