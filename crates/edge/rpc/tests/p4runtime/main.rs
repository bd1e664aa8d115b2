//! P4Runtime, as clients and the core see it. All tests are one binary: linking each by itself takes
//! longer than running them.

mod support;

mod connections;
mod direct;
mod entities;
mod fit;
mod grpc;
mod ports;
mod primacy;
mod priorities;
mod random;
mod translated;
mod tutorial;
mod workers;
mod wrong;
