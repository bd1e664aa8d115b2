//! Dead code elimination: removes statements that only compute a value that nothing reads, namely
//! assignments, reads of registers, hashes, and places for results.

use super::effects::Graph;
use super::liveness::frames;
use crate::Program;

pub(super) fn run(program: &mut Program) {
    let graph = Graph::new(program);
    for frame in frames(program, &graph) {
        frame.analyse(program, &graph, true);
    }
}
