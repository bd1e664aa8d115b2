#include "shell.p4"

const bit<8> N = 3;

struct s {
    tuple<N> a;
}

SWITCH(EmptyParser, NoIngress);
