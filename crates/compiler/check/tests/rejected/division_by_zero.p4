#include "shell.p4"

const bit<8> N = 8w1 / 0;

SWITCH(EmptyParser, NoIngress);
