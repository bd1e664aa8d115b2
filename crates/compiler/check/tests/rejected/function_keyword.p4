#include "shell.p4"

function next(bit<8> a) {
    return a + 1;
}

SWITCH(EmptyParser, NoIngress);
