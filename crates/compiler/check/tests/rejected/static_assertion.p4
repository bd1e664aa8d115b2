#include "shell.p4"

const bool CHECK = static_assert(1 + 1 == 3, "arithmetic holds");

SWITCH(EmptyParser, NoIngress);
