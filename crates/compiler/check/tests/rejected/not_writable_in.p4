#include "shell.p4"

void f(in bit<8> x) {
    x = 1;
}

SWITCH(EmptyParser, NoIngress);
