#include "shell.p4"

T f<T>(in T x) {
    return y;
}

SWITCH(EmptyParser, NoIngress);
