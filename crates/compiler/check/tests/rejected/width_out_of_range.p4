#include "shell.p4"

struct s {
    bit<4096> a;
}

SWITCH(EmptyParser, NoIngress);
