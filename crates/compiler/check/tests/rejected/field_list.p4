#include "shell.p4"

struct m_t {
    @field_list("one")
    bit<8> a;
}

SWITCH(EmptyParser, NoIngress);
