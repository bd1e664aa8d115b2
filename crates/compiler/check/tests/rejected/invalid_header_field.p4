#include "shell.p4"

struct inner {
    h_t h;
}

header outer {
    inner i;
}

SWITCH(EmptyParser, NoIngress);
