#include <core.p4>

parser Front(packet_in packet);
package Other(Front front);

parser P(packet_in packet) {
    state start {
        transition select(1) {
            nothing: accept;
        }
    }
}

Other(P()) main;
