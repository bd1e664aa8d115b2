control Brace(inout bit<8> x) {
    action set() {
        x = 1;

    table t {
        keys = { x : exact; }
        acitons = { set; }
        default_action = set();
    }
    apply {
        if (x = 1) {
            x == 2;
        } elif (x == 3) {
        }
        x++;
        while (x > 0) {
        }
        x--;

control After(inout bit<8> x) {
    apply {
        x = 1;
    }
}

parser States(out bit<8> x) {
    state start {
        x = 1;

    state next {
        transition accept;
    }
}
