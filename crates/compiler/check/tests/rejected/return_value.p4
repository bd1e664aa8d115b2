#include "shell.p4"

bit<8> f() {
    return;
}

SWITCH(EmptyParser, NoIngress);
