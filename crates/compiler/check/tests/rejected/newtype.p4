#include "shell.p4"

type h_t new_t;

SWITCH(EmptyParser, NoIngress);
