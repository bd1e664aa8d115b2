#include "shell.p4"
