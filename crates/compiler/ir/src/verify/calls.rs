//! Rule 9: the call graph and the depth of calls.

use super::{MAX_NESTING, Verifier};
use crate::graph::{Node, Vertices};
use crate::{Callee, Program, TableId};

#[derive(Clone, Debug, Default)]
struct Vertex {
    /// Nesting of its statements and expressions.
    depth: u32,
    /// Callees, with their nesting depth in it.
    calls: Vec<(usize, u32)>,
}

/// The call graph.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    numbers: Vertices,
    vertices: Vec<Vertex>,
    /// The vertex whose body is being verified.
    current: usize,
}

impl Graph {
    pub(super) fn new(program: &Program) -> Graph {
        let numbers = Vertices::new(program);
        let mut vertices = vec![Vertex::default(); numbers.count()];
        for (index, table) in program.tables.iter().enumerate() {
            let node = Node::Table(TableId(index as u32));
            vertices[numbers.of(node)].calls = table
                .actions
                .iter()
                .map(|listed| (numbers.of(Node::Call(Callee::Action(listed.action))), 1))
                .collect();
        }
        Graph {
            numbers,
            vertices,
            current: 0,
        }
    }

    /// Says whose body is verified from here on.
    pub(super) fn enter(&mut self, node: Node) {
        self.current = self.numbers.of(node);
    }

    pub(super) fn note_depth(&mut self, depth: u32) {
        if let Some(vertex) = self.vertices.get_mut(self.current) {
            vertex.depth = vertex.depth.max(depth);
        }
    }

    /// Notes a call from the current vertex, `depth` deep in it.
    pub(super) fn call(&mut self, node: Node, depth: u32) {
        let callee = self.numbers.of(node);
        if let Some(vertex) = self.vertices.get_mut(self.current) {
            vertex.calls.push((callee, depth));
        }
    }

    /// Nesting of a vertex with all that it calls; `None` if that is beyond the
    /// limit, as it is of a circle.
    fn total(&self, vertex: usize, known: &mut [Option<u32>], above: u32) -> Option<u32> {
        if above > MAX_NESTING {
            return None;
        }
        let total = match known[vertex] {
            Some(total) => total,
            None => {
                let mut total = self.vertices[vertex].depth;
                for &(callee, depth) in &self.vertices[vertex].calls {
                    let depth = depth.max(1);
                    let below = self.total(callee, known, above + depth)?;
                    total = total.max(depth + below);
                }
                known[vertex] = Some(total);
                total
            }
        };
        Some(total).filter(|total| above + total <= MAX_NESTING)
    }
}

impl Verifier<'_> {
    pub(super) fn call_graph(&mut self) {
        let mut known = vec![None; self.graph.vertices.len()];
        for vertex in 0..known.len() {
            if self.graph.total(vertex, &mut known, 0).is_none() {
                self.place = "call graph".to_owned();
                self.fail(
                    9,
                    format!("a callable calls itself, or calls nest deeper than {MAX_NESTING}"),
                );
                return;
            }
        }
    }
}
