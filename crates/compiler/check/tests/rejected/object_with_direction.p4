#include "shell.p4"

control Sub(in packet_out p) {
    apply {}
}

SWITCH(EmptyParser, NoIngress);
