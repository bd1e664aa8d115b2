//! Effects of callables: the variables that they and their callees read and write.

use super::walk::{Part, children, indices, parts, places};
use crate::graph::{Node, Vertices};
use crate::{
    ActionId, Arg, Callee, ControlId, Direction, FunctionId, Param, ParserId, Place, Program, Stmt,
    TableId, Transition, VarId,
};
use std::collections::BTreeSet;

/// Variables read and written.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    pub(super) reads: BTreeSet<VarId>,
    pub(super) writes: BTreeSet<VarId>,
}

impl Effects {
    pub(super) fn read(&mut self, expr: &crate::Expr) {
        places(expr, &mut |place| {
            self.reads.insert(place.var);
        });
    }

    fn indices(&mut self, place: &Place) {
        indices(place, &mut |index| self.read(index));
    }

    fn add(&mut self, other: &Effects) {
        self.reads.extend(&other.reads);
        self.writes.extend(&other.writes);
    }
}

/// The call graph of a program, with the effects of its nodes.
pub(super) struct Graph {
    numbers: Vertices,
    /// Effects of each vertex by itself, and in the end with all that it calls.
    pub(super) own: Vec<Effects>,
    total: Vec<Effects>,
    calls: Vec<Vec<usize>>,
    /// The six blocks of the pipeline.
    roots: Vec<usize>,
}

impl Graph {
    pub(super) fn new(program: &Program) -> Graph {
        let numbers = Vertices::new(program);
        let vertices = numbers.count();
        let mut graph = Graph {
            numbers,
            own: vec![Effects::default(); vertices],
            total: Vec::new(),
            calls: vec![Vec::new(); vertices],
            roots: Vec::new(),
        };
        graph.fill(program);
        graph.roots = graph.pipeline(program);
        let mut total = vec![None; vertices];
        for vertex in 0..vertices {
            graph.close(vertex, &mut total);
        }
        graph.total = total.into_iter().flatten().collect();
        graph
    }

    fn pipeline(&self, program: &Program) -> Vec<usize> {
        let pipeline = &program.pipeline;
        let controls = [
            pipeline.verify_checksum,
            pipeline.ingress,
            pipeline.egress,
            pipeline.compute_checksum,
            pipeline.deparser,
        ];
        let controls = controls.map(|id| self.vertex(Node::Call(Callee::Control(id))));
        let parser = self.vertex(Node::Call(Callee::Parser(pipeline.parser)));
        controls.into_iter().chain([parser]).collect()
    }

    pub(super) fn vertex(&self, node: Node) -> usize {
        self.numbers.of(node)
    }

    /// Variables that a node reads and writes, its parameters and locals included.
    pub(super) fn effects(&self, node: Node) -> &Effects {
        &self.total[self.vertex(node)]
    }

    /// The nodes that some path through the pipeline reaches, if `without` is cut out.
    pub(super) fn reached(&self, without: Option<usize>) -> Vec<bool> {
        let mut reached = vec![false; self.own.len()];
        let mut pending = self.roots.clone();
        while let Some(vertex) = pending.pop() {
            if Some(vertex) != without && !std::mem::replace(&mut reached[vertex], true) {
                pending.extend(&self.calls[vertex]);
            }
        }
        reached
    }

    /// Adds what a node reaches to what is reached.
    pub(super) fn reach(&self, node: Node, reached: &mut [bool]) {
        let mut pending = vec![self.vertex(node)];
        while let Some(vertex) = pending.pop() {
            if !std::mem::replace(&mut reached[vertex], true) {
                pending.extend(&self.calls[vertex]);
            }
        }
    }

    fn close(&self, vertex: usize, total: &mut [Option<Effects>]) {
        if total[vertex].is_some() {
            return;
        }
        let mut effects = self.own[vertex].clone();
        for &callee in &self.calls[vertex] {
            self.close(callee, total);
            if let Some(inner) = &total[callee] {
                effects.add(inner);
            }
        }
        total[vertex] = Some(effects);
    }

    fn fill(&mut self, program: &Program) {
        for (index, parser) in program.parsers.iter().enumerate() {
            let vertex = self.vertex(Node::Call(Callee::Parser(ParserId(index as u32))));
            self.frame(vertex, &parser.params, &parser.locals);
            self.stmts(vertex, &parser.init);
            for state in &parser.states {
                self.stmts(vertex, &state.body);
                if let Transition::Select { keys, .. } = &state.transition {
                    keys.iter().for_each(|key| self.own[vertex].read(key));
                }
            }
        }
        for (index, control) in program.controls.iter().enumerate() {
            let vertex = self.vertex(Node::Call(Callee::Control(ControlId(index as u32))));
            self.frame(vertex, &control.params, &control.locals);
            self.stmts(vertex, &control.body);
        }
        for (index, action) in program.actions.iter().enumerate() {
            let vertex = self.vertex(Node::Call(Callee::Action(ActionId(index as u32))));
            self.frame(vertex, &action.params, &action.locals);
            self.stmts(vertex, &action.body);
        }
        for (index, function) in program.functions.iter().enumerate() {
            let vertex = self.vertex(Node::Call(Callee::Function(FunctionId(index as u32))));
            self.frame(vertex, &function.params, &function.locals);
            self.own[vertex].reads.extend(function.result);
            self.stmts(vertex, &function.body);
        }
        for (index, table) in program.tables.iter().enumerate() {
            let vertex = self.vertex(Node::Table(TableId(index as u32)));
            for key in &table.keys {
                self.own[vertex].read(&key.expr);
            }
            for listed in &table.actions {
                let action = self.vertex(Node::Call(Callee::Action(listed.action)));
                self.calls[vertex].push(action);
                for arg in &listed.bound {
                    self.arg(vertex, arg);
                }
            }
        }
    }

    fn arg(&mut self, vertex: usize, arg: &Arg) {
        let effects = &mut self.own[vertex];
        match arg {
            Arg::In(value) => effects.read(value),
            Arg::Out(place) | Arg::InOut(place) => {
                effects.indices(place);
                effects.writes.insert(place.var);
                if matches!(arg, Arg::InOut(_)) {
                    effects.reads.insert(place.var);
                }
            }
        }
    }

    /// Parameters are written at a call and read at its end; locals are reset.
    fn frame(&mut self, vertex: usize, params: &[Param], locals: &[VarId]) {
        let effects = &mut self.own[vertex];
        effects.writes.extend(locals);
        for param in params {
            effects.writes.insert(param.var);
            if matches!(param.direction, Direction::Out | Direction::InOut) {
                effects.reads.insert(param.var);
            }
        }
    }

    fn stmts(&mut self, vertex: usize, stmts: &[Stmt]) {
        for stmt in stmts {
            own(stmt, &mut self.own[vertex]);
            if let Some(node) = called(stmt) {
                let callee = self.vertex(node);
                self.calls[vertex].push(callee);
            }
            for list in children(stmt) {
                self.stmts(vertex, list);
            }
        }
    }

    /// Variables that a statement reads and writes, with its inner statements and their callees.
    pub(super) fn of_stmt(&self, stmt: &Stmt) -> Effects {
        let mut effects = Effects::default();
        self.add_stmt(stmt, &mut effects);
        effects
    }

    fn add_stmt(&self, stmt: &Stmt, effects: &mut Effects) {
        own(stmt, effects);
        if let Some(node) = called(stmt) {
            effects.add(self.effects(node));
        }
        for list in children(stmt) {
            for stmt in list {
                self.add_stmt(stmt, effects);
            }
        }
    }
}

/// Callable or entity that a statement calls or applies.
pub(super) fn called(stmt: &Stmt) -> Option<Node> {
    match stmt {
        Stmt::Apply { table, .. } => Some(Node::Table(*table)),
        Stmt::Call { callee, .. } => Some(Node::Call(*callee)),
        _ => None,
    }
}

/// Adds the variables that a statement itself reads and writes.
fn own(stmt: &Stmt, effects: &mut Effects) {
    parts(stmt, &mut |part| match part {
        Part::Value(value) => effects.read(value),
        Part::Look(place) => {
            effects.indices(place);
            effects.reads.insert(place.var);
        }
        Part::Result(place) => {
            effects.indices(place);
            effects.writes.insert(place.var);
        }
        Part::Update(place) => {
            effects.indices(place);
            effects.reads.insert(place.var);
            effects.writes.insert(place.var);
        }
    });
}
