const bit<8> a = 8w0xfg;
const bit<8> b = 0b12 + 1_;
const bit<8> c = `1`;
const bit<70000> d = 70000w1;
const string e = "never closed;
