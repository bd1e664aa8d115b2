#include "shell.p4"

V1Switch(EmptyParser(), NoVerify(), NoIngress(), NoEgress(), NoDeparser(), NoCompute()) main;
