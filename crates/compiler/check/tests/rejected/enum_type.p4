#include "shell.p4"

enum bool E {
    no = false
}

SWITCH(EmptyParser, NoIngress);
