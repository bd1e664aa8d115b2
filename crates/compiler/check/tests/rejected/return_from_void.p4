#include "shell.p4"

void f() {
    return 1;
}

SWITCH(EmptyParser, NoIngress);
