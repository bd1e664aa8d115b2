#include "shell.p4"

struct s1 {
    h_t[60000] a;
}

struct s2 {
    s1 a;
    s1 b;
}

SWITCH(EmptyParser, NoIngress);
