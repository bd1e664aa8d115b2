//! Specialised code for the paths through the pipeline's parser, one after the other.
//!
//! A state that is reached with different values of variables, above all different valid
//! headers, is made once for each. So is what follows the parser, for as many of its ends
//! as a budget allows: where headers are constant, neither their fields nor the branches
//! that ask for them cost anything.
//!
//! A packet that comes to a state on a cycle is parsed over again, by the code for all paths.

use super::Gen;
use crate::plan::{Binding, fixed_place, params};
use cranelift_codegen::ir::Block;
use rustc_hash::FxHashMap;
use stateplane_ir::passes::parses_only;
use stateplane_ir::{Arg, Callee, ParserId, Program, Stmt, Target, Transition, VarId};
use std::collections::BTreeMap;

/// Values of the packet's words that are known at a place of the parser, and, under
/// [`CURSOR`], the bit that is read next. They tell places apart that are worth code of
/// their own: nothing relies on them.
pub(super) type Known = BTreeMap<usize, u64>;

const CURSOR: usize = usize::MAX;

/// Average number of blocks for each parser state above which each remaining state gets one block
/// for all paths.
const MOST_BLOCKS: usize = 16;

/// Most instructions of the code behind an end of the parser that is not long.
const LONGEST_SHORT: usize = 8_000;

/// Instructions that ends of the parser may have together: those whose code is not long, and those whose
/// code is. The first end of each kind may exceed them; an end that does not fit leads to the code for all
/// paths.
const SHORT_BUDGET: usize = 32_000;
const LONG_BUDGET: usize = 48_000;

/// Instructions with which no further end is measured.
const MOST_MEASURED: usize = 64_000;

/// Instructions of the code behind ends of the parser, by their places.
pub(super) type Costs = BTreeMap<usize, usize>;

/// A statement of a parser's state, where a parser that it called goes on or a state
/// begins.
#[derive(Clone)]
struct Level {
    parser: ParserId,
    state: usize,
    next: usize,
    /// Positions of the parser's parameters.
    bound: Vec<(VarId, usize)>,
}

/// Places in an order in which each comes behind all from where it is reached, and what is
/// known there.
type Place = (Vec<usize>, Known);

/// State of the walk over a path through the parser.
#[derive(Default)]
struct Ways {
    /// The code for all paths.
    again: Option<Block>,
    /// States that are on cycles.
    cyclic: FxHashMap<ParserId, Vec<bool>>,
    /// No statement was made that changes the packet.
    untouched: bool,
    /// Blocks that are still to be made, and the innermost parser last.
    waiting: BTreeMap<Place, (Block, Vec<Level>)>,
    made: usize,
    /// Ends of the parser.
    ends: FxHashMap<Known, Block>,
    /// Positions of states in a topological order.
    ranks: FxHashMap<ParserId, Vec<usize>>,
    most: usize,
}

/// True if a parser's paths can be told apart: where paths lead back, a parser may run over again, and
/// parsers call others between two statements of a state only, to whose arguments these write directly.
pub(super) fn has_ways(plan: &crate::plan::Plan) -> bool {
    plan.calls.inline_all
        && (!plan.counts_transitions || parses_only(&plan.program))
        && !plan.unaligned
        && is_plain(plan, plan.program.pipeline.parser, &plan.storage.bases)
}

fn is_plain(plan: &crate::plan::Plan, id: ParserId, bases: &[usize]) -> bool {
    let program = &plan.program;
    let parser = &program.parsers[id.index()];
    let mut plain = true;
    let mut look = |stmt: &Stmt| {
        let calls = matches!(
            stmt,
            Stmt::Call {
                callee: Callee::Parser(_),
                ..
            }
        );
        plain &= !calls && !matches!(stmt, Stmt::Return | Stmt::Exit | Stmt::Loop { .. });
    };
    crate::plan::each_within(&parser.init, &mut look);
    let mut calls = Vec::new();
    for stmt in parser.states.iter().flat_map(|state| &state.body) {
        match stmt {
            Stmt::Call {
                callee: Callee::Parser(inner),
                args,
                ..
            } => calls.push((*inner, args)),
            other => crate::plan::each_within(std::slice::from_ref(other), &mut look),
        }
    }
    plain
        && calls.into_iter().all(|(inner, args)| {
            let bound = bindings(plan, inner, args, bases);
            let direct = bound.iter().zip(args).all(|(binding, arg)| {
                matches!(arg, Arg::In(_)) || matches!(binding, Binding::Reference(_))
            });
            let mut within = bases.to_vec();
            let params = &program.parsers[inner.index()].params;
            for (param, binding) in params.iter().zip(bound) {
                if let Binding::Reference(at) = binding {
                    within[param.var.index()] = at;
                }
            }
            direct && is_plain(plan, inner, &within)
        })
}

fn bindings(
    plan: &crate::plan::Plan,
    inner: ParserId,
    args: &[Arg],
    bases: &[usize],
) -> Vec<Binding> {
    let program = &plan.program;
    let callee = Callee::Parser(inner);
    let params = params(program, callee);
    plan.calls.bindings(program, callee, params, args, |place| {
        fixed_place(program, &plan.storage, bases, place)
    })
}

/// States of a parser to which a state leads.
fn targets(program: &Program, id: ParserId, state: usize) -> Vec<usize> {
    let targets: Vec<Target> = match &program.parsers[id.index()].states[state].transition {
        Transition::To(target) => vec![*target],
        Transition::Select { cases, .. } => cases.iter().map(|(_, target)| *target).collect(),
    };
    let targets = targets.into_iter().filter_map(|target| match target {
        Target::State(state) => Some(state.index()),
        Target::Accept | Target::Reject => None,
    });
    targets.collect()
}

/// For each state of a parser, if it leads back to itself.
fn cyclic(program: &Program, id: ParserId) -> Vec<bool> {
    let states = program.parsers[id.index()].states.len();
    let leads_back = |state: usize| {
        let mut seen = vec![false; states];
        let mut waiting = targets(program, id, state);
        while let Some(next) = waiting.pop() {
            if !std::mem::replace(&mut seen[next], true) {
                waiting.extend(targets(program, id, next));
            }
        }
        seen[state]
    };
    (0..states).map(leads_back).collect()
}

/// Positions of a parser's states in an order in which each comes behind those that lead to
/// it. Nothing follows those on cycles.
fn ranks(program: &Program, id: ParserId, cyclic: &[bool]) -> Vec<usize> {
    let parser = &program.parsers[id.index()];
    let targets = |state: usize| {
        if cyclic[state] {
            Vec::new()
        } else {
            targets(program, id, state)
        }
    };
    let mut ranks = vec![None; parser.states.len()];
    let mut left = parser.states.len();
    let mut path = vec![(parser.start.index(), targets(parser.start.index()))];
    while let Some((state, rest)) = path.last_mut() {
        match rest.pop() {
            Some(next) if ranks[next].is_none() => path.push((next, targets(next))),
            Some(_) => {}
            None => {
                // A state is done after all that it leads to.
                if ranks[*state].is_none() {
                    left -= 1;
                    ranks[*state] = Some(left);
                }
                path.pop();
            }
        }
    }
    ranks.into_iter().map(Option::unwrap_or_default).collect()
}

/// Ends, by their places, that have code of their own, in the order in which it is made: all, where costs
/// are not known; else those that were measured and fit into the budgets.
fn specialised(ends: usize, costs: Option<&Costs>) -> Vec<usize> {
    let Some(costs) = costs else {
        return (0..ends).collect();
    };
    let costs = costs.iter().map(|(at, cost)| (*at, *cost));
    let (short, long): (Vec<_>, Vec<_>) = costs.partition(|(_, cost)| *cost <= LONGEST_SHORT);
    let fitting = |ends: Vec<(usize, usize)>, budget: usize| {
        let mut spent = 0;
        ends.into_iter().filter_map(move |(at, cost)| {
            let fits = spent == 0 || spent + cost <= budget;
            fits.then(|| {
                spent += cost;
                at
            })
        })
    };
    let short = fitting(short, SHORT_BUDGET);
    short.chain(fitting(long, LONG_BUDGET)).collect()
}

impl Gen<'_, '_> {
    /// The parser of the pipeline, whose frame is the innermost, on paths without states on cycles; those
    /// lead to `again`, where the packet is as it came. Gives its ends, those first of which most is known.
    pub(super) fn ways(&mut self, again: Block) -> Vec<Block> {
        let program = self.program();
        let id = program.pipeline.parser;
        let bases = self.bases.clone();
        let cyclic = |at: usize| (ParserId(at as u32), cyclic(program, ParserId(at as u32)));
        let mut ways = Ways {
            again: Some(again),
            cyclic: (0..program.parsers.len()).map(cyclic).collect(),
            untouched: program.parsers[id.index()].init.is_empty(),
            most: program
                .parsers
                .iter()
                .map(|p| p.states.len())
                .sum::<usize>()
                * MOST_BLOCKS,
            ..Ways::default()
        };
        let parser = &program.parsers[id.index()];
        self.stmts(&parser.init);
        self.lead_to(
            &mut ways,
            vec![Level {
                parser: id,
                state: parser.start.index(),
                next: 0,
                bound: Vec::new(),
            }],
        );
        while let Some(((_, known), (block, levels))) = ways.waiting.pop_first() {
            self.bases.clone_from(&bases);
            for (var, at) in levels.iter().flat_map(|level| &level.bound) {
                self.bases[var.index()] = *at;
            }
            self.values = known;
            if self.go_on(block) {
                self.follow(&mut ways, levels);
            }
        }
        self.bases = bases;
        self.live = false;
        let mut ends: Vec<(Known, Block)> = ways.ends.into_iter().collect();
        ends.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        ends.into_iter().map(|(_, block)| block).collect()
    }

    /// From a place on to the next ones.
    fn follow(&mut self, ways: &mut Ways, mut levels: Vec<Level>) {
        let program = self.program();
        let Some(level) = levels.last().cloned() else {
            return;
        };
        let parser = &program.parsers[level.parser.index()];
        let state = &parser.states[level.state];
        for (at, stmt) in state.body.iter().enumerate().skip(level.next) {
            self.free_scratch();
            let Stmt::Call {
                callee: Callee::Parser(inner),
                args,
                ..
            } = stmt
            else {
                ways.untouched = false;
                self.stmt(stmt);
                if !self.live {
                    return;
                }
                continue;
            };
            if let Some(level) = levels.last_mut() {
                level.next = at + 1;
            }
            let bound = self.enter_parser(*inner, args, ways.untouched);
            ways.untouched = false;
            levels.push(Level {
                parser: *inner,
                state: program.parsers[inner.index()].start.index(),
                next: 0,
                bound,
            });
            return self.lead_to(ways, levels);
        }
        self.free_scratch();
        let mut to = |g: &mut Self, target: Target| {
            let mut levels = levels.clone();
            match target {
                Target::State(next) => {
                    if let Some(level) = levels.last_mut() {
                        (level.state, level.next) = (next.index(), 0);
                    }
                }
                Target::Accept => drop(levels.pop()),
                Target::Reject => {
                    return g.reject(stateplane_runtime::parser::core_error::NO_ERROR);
                }
            }
            g.lead_to(ways, levels);
        };
        match &state.transition {
            Transition::To(target) => {
                self.check_fault();
                to(self, *target);
            }
            Transition::Select { keys, cases } => self.select(keys, cases, &mut to),
        }
    }

    /// Gives a parser its arguments; tells where its parameters lie. Headers and user metadata of an
    /// `untouched` packet are 0, of which those in registers are still noted as known.
    fn enter_parser(
        &mut self,
        inner: ParserId,
        args: &[Arg],
        untouched: bool,
    ) -> Vec<(VarId, usize)> {
        let program = self.program();
        let parser = &program.parsers[inner.index()];
        let bindings = bindings(self.plan, inner, args, &self.bases);
        let mut bound = Vec::new();
        for ((param, arg), binding) in parser.params.iter().zip(args).zip(bindings) {
            match binding {
                Binding::Copy => self.copy_in(*param, arg, &mut Vec::new()),
                Binding::Reference(at) => bound.push((param.var, at, matches!(arg, Arg::Out(_)))),
            }
        }
        self.check_fault();
        for (var, at, cleared) in &bound {
            self.bases[var.index()] = *at;
            if *cleared {
                let spot = self.variable(*var);
                if untouched && *at < self.plan.storage.standard.start {
                    self.clear_registers(&spot);
                } else {
                    self.clear(&spot);
                }
            }
        }
        self.reset(&parser.locals);
        self.stmts(&parser.init);
        bound.into_iter().map(|(var, at, _)| (var, at)).collect()
    }

    /// Ends the block: to a place, or where `levels` is empty to the parser's end.
    fn lead_to(&mut self, ways: &mut Ways, levels: Vec<Level>) {
        if !self.live {
            return;
        }
        if let (Some(level), Some(again)) = (levels.last(), ways.again)
            && ways.cyclic[&level.parser][level.state]
        {
            return self.parse_again(again);
        }
        let cursor = self.b.use_var(self.cursor);
        if let Some(cursor) = self.known(cursor) {
            self.values.insert(CURSOR, cursor);
        } else {
            self.values.remove(&CURSOR);
        }
        let mut known = self.values.clone();
        if ways.made > ways.most {
            known.clear();
        }
        let block = if levels.is_empty() {
            match ways.ends.get(&known) {
                Some(block) => *block,
                None => {
                    let block = self.block();
                    ways.ends.insert(known, block);
                    block
                }
            }
        } else {
            let program = self.program();
            let mut place = Vec::new();
            for (depth, level) in levels.iter().enumerate() {
                let ranks = ways
                    .ranks
                    .entry(level.parser)
                    .or_insert_with(|| ranks(program, level.parser, &ways.cyclic[&level.parser]));
                // Within what is called, before what follows the call.
                let within = usize::from(depth + 1 < levels.len());
                place.extend([ranks[level.state], 2 * level.next - within]);
            }
            match ways.waiting.get(&(place.clone(), known.clone())) {
                Some((block, _)) => *block,
                None => {
                    ways.made += 1;
                    let block = self.block();
                    ways.waiting.insert((place, known), (block, levels));
                    block
                }
            }
        };
        self.jump(block);
    }

    /// Ends the block: to where the packet is parsed over again.
    fn parse_again(&mut self, again: Block) {
        for words in self.plan.cleared() {
            let to = self.pointer(words.start, None);
            self.zero_words(to, words.len());
        }
        self.jump(again);
    }

    /// Makes what follows each end of the parser with `rest`, as far as the budgets go; the
    /// other ends lead to `others`. Gives the greatest number of bytes that is emitted.
    pub(super) fn after_each(
        &mut self,
        ends: Vec<Block>,
        others: Block,
        mut rest: impl FnMut(&mut Self),
    ) -> usize {
        let room = self.room;
        let mut most = room;
        for at in specialised(ends.len(), self.costs.as_ref()) {
            if self.costs.is_none() && self.measured.values().sum::<usize>() > MOST_MEASURED {
                break;
            }
            self.go_on(ends[at]);
            self.deferred.come_to(at);
            // Each writes what it emits to the same room.
            self.room = room;
            let before = self.b.func.dfg.num_insts();
            rest(self);
            most = most.max(self.room);
            let cost = self.b.func.dfg.num_insts() - before;
            self.measured.insert(at, cost);
        }
        for (at, end) in ends.into_iter().enumerate() {
            if !self.measured.contains_key(&at) {
                self.go_on(end);
                self.jump(others);
            }
        }
        self.room = room;
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_with_long_code_come_last_and_take_no_budget_from_others() {
        let long = LONGEST_SHORT + 1;
        let costs = Costs::from([(0, long), (1, 10), (3, LONGEST_SHORT), (4, long)]);
        assert_eq!(specialised(6, Some(&costs)), [1, 3, 0, 4]);
        assert_eq!(specialised(3, None), [0, 1, 2]);
    }

    #[test]
    fn an_end_that_does_not_fit_leaves_the_budget_to_the_next_ones() {
        let costs = Costs::from([
            (0, LONG_BUDGET + 1),
            (1, LONGEST_SHORT + 1),
            (2, LONGEST_SHORT),
            (3, LONGEST_SHORT),
            (4, LONGEST_SHORT),
            (5, LONGEST_SHORT - 1),
            (6, LONGEST_SHORT),
            (7, 1),
        ]);
        assert_eq!(specialised(8, Some(&costs)), [2, 3, 4, 5, 7, 0]);
    }
}
