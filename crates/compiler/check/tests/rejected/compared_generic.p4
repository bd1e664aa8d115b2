#include "shell.p4"

bool same<T>(in T a, in T b) {
    return a == b;
}

SWITCH(EmptyParser, NoIngress);
