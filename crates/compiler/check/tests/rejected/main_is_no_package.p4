#include "shell.p4"

register<bit<8>>(4) main;
