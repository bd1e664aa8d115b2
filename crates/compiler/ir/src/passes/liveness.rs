//! Liveness: finds the variables that are read later, backwards through the statements of a
//! callable, for the variables that no other callable sees when it has ended.

use super::effects::{Effects, Graph};
use super::walk::{Part, may_fault, parts, place_may_fault};
use crate::graph::Node;
use crate::{
    ActionId, Callee, ControlId, Direction, Expr, FunctionId, HashAlgorithm, Op, Param, Parser,
    ParserId, Place, Program, Stmt, Target, Transition, VarId,
};
use std::collections::BTreeSet;

type Live = BTreeSet<VarId>;

/// Nesting of loops beyond which all variables count as read.
const MAX_LOOPS: u32 = 3;

/// A callable with the variables that are dead where it ends.
pub(super) struct Frame {
    pub(super) callee: Callee,
    /// Locals and `in` parameters that only the callable, and what runs within it alone,
    /// mention.
    pub(super) private: Live,
}

/// All callables that the pipeline reaches.
pub(super) fn frames(program: &Program, graph: &Graph) -> Vec<Frame> {
    let parsers = (0..program.parsers.len() as u32).map(|id| Callee::Parser(ParserId(id)));
    let controls = (0..program.controls.len() as u32).map(|id| Callee::Control(ControlId(id)));
    let actions = (0..program.actions.len() as u32).map(|id| Callee::Action(ActionId(id)));
    let functions = (0..program.functions.len() as u32).map(|id| Callee::Function(FunctionId(id)));
    let callees = parsers.chain(controls).chain(actions).chain(functions);
    callees
        .filter_map(|callee| frame(program, graph, callee))
        .collect()
}

fn frame(program: &Program, graph: &Graph, callee: Callee) -> Option<Frame> {
    let (params, locals, result) = match callee {
        Callee::Parser(id) => {
            let parser = &program.parsers[id.index()];
            (&parser.params, &parser.locals, None)
        }
        Callee::Control(id) => {
            let control = &program.controls[id.index()];
            (&control.params, &control.locals, None)
        }
        Callee::Action(id) => {
            let action = &program.actions[id.index()];
            (&action.params, &action.locals, None)
        }
        Callee::Function(id) => {
            let function = &program.functions[id.index()];
            (&function.params, &function.locals, function.result)
        }
    };
    let vertex = graph.vertex(Node::Call(callee));
    let is_in = |param: &&Param| matches!(param.direction, Direction::In | Direction::Data);
    let copied_out = |var: &VarId| {
        let mut outs = params.iter().filter(|param| !is_in(param));
        Some(*var) == result || outs.any(|param| param.var == *var)
    };
    let ins = params.iter().filter(is_in).map(|param| param.var);
    let mut private: Live = locals.iter().copied().chain(ins).collect();
    private.retain(|var| !copied_out(var));
    if private.is_empty() {
        return None;
    }
    // What runs also when the callable does not would see what it leaves behind.
    let outside = graph.reached(Some(vertex));
    for (other, effects) in graph.own.iter().enumerate() {
        if outside[other] && other != vertex {
            private.retain(|var| !effects.reads.contains(var) && !effects.writes.contains(var));
        }
    }
    (!private.is_empty()).then_some(Frame { callee, private })
}

impl Frame {
    /// The private variables that are read before they are written when the callable
    /// begins; removes dead statements if `remove` is set.
    pub(super) fn analyse(&self, program: &mut Program, graph: &Graph, remove: bool) -> Live {
        let mut liveness = Liveness {
            frame: self,
            graph,
            remove,
            loops: 0,
        };
        let body = match self.callee {
            Callee::Parser(id) => return liveness.parser(&mut program.parsers[id.index()]),
            Callee::Control(id) => &mut program.controls[id.index()].body,
            Callee::Action(id) => &mut program.actions[id.index()].body,
            Callee::Function(id) => &mut program.functions[id.index()].body,
        };
        liveness.stmts(body, Live::new(), &Exits::default())
    }
}

/// Live variables behind a statement that does not continue with the next one.
#[derive(Clone, Default)]
struct Exits {
    at_return: Live,
    at_break: Live,
    at_continue: Live,
}

struct Liveness<'a> {
    frame: &'a Frame,
    graph: &'a Graph,
    remove: bool,
    loops: u32,
}

impl Liveness<'_> {
    fn read(&self, live: &mut Live, effects: &Effects) {
        live.extend(effects.reads.intersection(&self.frame.private));
    }

    fn read_expr(&self, live: &mut Live, expr: &Expr) {
        let mut effects = Effects::default();
        effects.read(expr);
        self.read(live, &effects);
    }

    fn is_dead(&self, live: &Live, place: &Place) -> bool {
        self.frame.private.contains(&place.var)
            && !live.contains(&place.var)
            && !place_may_fault(place)
    }

    /// Variables live before the first of the statements, if `live` are live behind them.
    fn stmts(&mut self, stmts: &mut Vec<Stmt>, mut live: Live, exits: &Exits) -> Live {
        let mut dead = Vec::new();
        for (index, stmt) in stmts.iter_mut().enumerate().rev() {
            if self.is_useless(stmt, &live) {
                dead.push(index);
            } else {
                live = self.stmt(stmt, live, exits);
            }
        }
        if self.remove {
            for index in dead {
                stmts.remove(index);
            }
        }
        live
    }

    /// True if a statement only writes variables that are not live.
    fn is_useless(&self, stmt: &Stmt, live: &Live) -> bool {
        let pure = match stmt {
            Stmt::Assign(..)
            | Stmt::SetValid(_)
            | Stmt::SetInvalid(_)
            | Stmt::PushFront(..)
            | Stmt::PopFront(..) => true,
            Stmt::Op(op) => match op {
                Op::Hash { algorithm, .. } => *algorithm != HashAlgorithm::Random,
                Op::RegisterRead { .. } | Op::PacketLength { .. } | Op::DirectMeterRead { .. } => {
                    true
                }
                _ => false,
            },
            _ => false,
        };
        let mut useless = pure;
        parts(stmt, &mut |part| match part {
            Part::Value(value) => useless &= !may_fault(value),
            Part::Look(_) => useless = false,
            Part::Result(place) | Part::Update(place) => useless &= self.is_dead(live, place),
        });
        useless
    }

    fn stmt(&mut self, stmt: &mut Stmt, mut live: Live, exits: &Exits) -> Live {
        match stmt {
            Stmt::If {
                condition,
                then,
                otherwise,
            } => {
                let mut before = self.stmts(then, live.clone(), exits);
                before.extend(self.stmts(otherwise, live, exits));
                self.read_expr(&mut before, condition);
                return before;
            }
            Stmt::Switch {
                value,
                cases,
                default,
            } => {
                let mut before = self.stmts(default, live.clone(), exits);
                for (_, body) in cases {
                    before.extend(self.stmts(body, live.clone(), exits));
                }
                self.read_expr(&mut before, value);
                return before;
            }
            Stmt::Block(body) | Stmt::Atomic(body) | Stmt::Apart(body) => {
                return self.stmts(body, live, exits);
            }
            Stmt::Loop { body, update } => return self.rounds(body, update, live, exits),
            Stmt::Break => return exits.at_break.clone(),
            Stmt::Continue => return exits.at_continue.clone(),
            Stmt::Return => return exits.at_return.clone(),
            Stmt::Exit => return Live::new(),
            Stmt::Apply {
                hit, action_run, ..
            } if self.remove => {
                for place in [hit, action_run] {
                    if place
                        .as_ref()
                        .is_some_and(|place| self.is_dead(&live, place))
                    {
                        *place = None;
                    }
                }
            }
            Stmt::Call { result, .. }
                if self.remove
                    && result
                        .as_ref()
                        .is_some_and(|place| self.is_dead(&live, place)) =>
            {
                *result = None;
            }
            _ => {}
        }
        // A variable wholly written here is not live before, unless the statement reads it.
        parts(stmt, &mut |part| {
            if let Part::Result(place) = part
                && place.path.is_empty()
            {
                live.remove(&place.var);
            }
        });
        self.read(&mut live, &self.graph.of_stmt(stmt));
        live
    }

    fn rounds(
        &mut self,
        body: &mut Vec<Stmt>,
        update: &mut Vec<Stmt>,
        behind: Live,
        exits: &Exits,
    ) -> Live {
        // The limit of rounds may end the loop before any of them.
        let mut head = behind.clone();
        let remove = std::mem::replace(&mut self.remove, false);
        self.loops += 1;
        if self.loops > MAX_LOOPS {
            head = self.frame.private.clone();
        }
        loop {
            let before = self.round(body, update, &head, &behind, exits);
            if before.is_subset(&head) {
                break;
            }
            head.extend(before);
        }
        self.remove = remove;
        if remove {
            self.round(body, update, &head, &behind, exits);
        }
        self.loops -= 1;
        head
    }

    fn round(
        &mut self,
        body: &mut Vec<Stmt>,
        update: &mut Vec<Stmt>,
        head: &Live,
        behind: &Live,
        exits: &Exits,
    ) -> Live {
        let next = self.stmts(update, head.clone(), exits);
        let inside = Exits {
            at_return: exits.at_return.clone(),
            at_break: behind.clone(),
            at_continue: next.clone(),
        };
        self.stmts(body, next, &inside)
    }

    fn parser(&mut self, parser: &mut Parser) -> Live {
        let mut before = vec![Live::new(); parser.states.len()];
        let remove = std::mem::replace(&mut self.remove, false);
        loop {
            let mut changed = false;
            for index in (0..parser.states.len()).rev() {
                let live = self.state(parser, index, &before);
                changed |= !live.is_subset(&before[index]);
                before[index].extend(live);
            }
            if !changed {
                break;
            }
        }
        self.remove = remove;
        if remove {
            for index in 0..parser.states.len() {
                self.state(parser, index, &before);
            }
        }
        let start = before[parser.start.index()].clone();
        let exits = Exits {
            at_return: start.clone(),
            ..Exits::default()
        };
        self.stmts(&mut parser.init, start, &exits)
    }

    fn state(&mut self, parser: &mut Parser, index: usize, before: &[Live]) -> Live {
        let state = &mut parser.states[index];
        let mut behind = Live::new();
        let mut go = |target: &Target| {
            if let Target::State(next) = target {
                behind.extend(&before[next.index()]);
            }
        };
        match &state.transition {
            Transition::To(target) => go(target),
            Transition::Select { keys, cases } => {
                cases.iter().for_each(|(_, target)| go(target));
                for key in keys {
                    self.read_expr(&mut behind, key);
                }
            }
        }
        let exits = Exits {
            at_return: behind.clone(),
            ..Exits::default()
        };
        self.stmts(&mut state.body, behind, &exits)
    }
}
