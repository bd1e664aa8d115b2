#include "shell.p4"

control Sub() {
    apply {}
}

Sub() sub;

SWITCH(EmptyParser, NoIngress);
