//! Lookups that only side exits need.
//!
//! A program may look up the way of a packet to the store before it knows whether the packet goes
//! there, and few do. If the specialised code for an end of the parser reads a lookup's results in side
//! exits alone, the lookup is made there. A first pass over the function finds such lookups, a second
//! one makes the code.
//!
//! Lookups are deferred that follow from values alone (no counter, meter or timeout of an entry; of
//! registers, those that no packet writes). Between the lookup and the exits nothing may read what it
//! writes, or write what it reads. Both passes see every read and every write of a word that lives in a
//! register, so that this holds by what the code does, not by an estimate of it.

use super::Gen;
use super::rare::Path;
use cranelift_codegen::ir::Value;
use stateplane_ir::passes::each_op;
use stateplane_ir::{Op, Program, Stmt};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// A lookup: the end of the parser whose code it is in, and its place there.
type Key = (usize, Path);

/// Words in registers that a lookup reads and writes.
#[derive(Clone, Debug, Default)]
struct Touched {
    reads: BTreeSet<usize>,
    writes: BTreeSet<usize>,
}

/// Work of a pass.
#[derive(Debug, Default)]
enum Pass {
    /// Nothing is deferred.
    #[default]
    Plain,
    /// Lookups are made in place, and those found that may be deferred.
    Finds,
    /// These are deferred.
    Defers(BTreeMap<Key, Touched>),
}

/// A lookup behind which the code goes on.
#[derive(Debug)]
struct Open {
    key: Key,
    touched: Touched,
    /// Something in the way of deferring it.
    is_refused: bool,
    /// The statement, its condition if that is no constant, and the places of parameters there.
    deferred: Option<(Stmt, Option<Value>, Vec<usize>)>,
}

/// Lookups of the function that is made.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    pass: Pass,
    /// Present end of the parser, within its ingress.
    end: Option<usize>,
    /// The end whose code is made.
    at: usize,
    all: Vec<Open>,
    /// Those of `all` that every packet passed that comes to the present place.
    open: Vec<usize>,
    /// The lookup that is being made in place.
    recorded: Option<Touched>,
    /// That reads or writes other words than those in registers.
    uses_memory: Cell<bool>,
    /// A deferred lookup is being made.
    is_made: bool,
    /// A path leads past the statements that follow.
    skips: bool,
    /// Registers that no packet writes, once they were asked for.
    constant: Option<Vec<bool>>,
}

impl Deferred {
    pub(super) fn finding() -> Deferred {
        Deferred {
            pass: Pass::Finds,
            ..Deferred::default()
        }
    }

    /// Defers the lookups that the pass before found, but for those that it refused.
    pub(super) fn deferring(found: Deferred) -> Deferred {
        let all = found.all.into_iter().filter(|it| !it.is_refused);
        let chosen = all.map(|it| (it.key, it.touched)).collect();
        Deferred {
            pass: Pass::Defers(chosen),
            ..Deferred::default()
        }
    }

    /// Lookups that the pass deferred.
    pub(super) fn count(&self) -> usize {
        self.all.iter().filter(|it| it.deferred.is_some()).count()
    }

    /// True if the pass deferred a lookup wrongly: its code is not to be used.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.pass, Pass::Defers(_)) && self.all.iter().any(|it| it.is_refused)
    }

    pub(super) fn note_read(&mut self, at: usize) {
        if self.end.is_none() || self.is_made {
            return;
        }
        if let Some(recorded) = &mut self.recorded {
            recorded.reads.insert(at);
        }
        self.refuse(|touched| touched.writes.contains(&at));
    }

    pub(super) fn note_write(&mut self, at: usize) {
        if self.end.is_none() || self.is_made {
            return;
        }
        if let Some(recorded) = &mut self.recorded {
            recorded.writes.insert(at);
        }
        self.refuse(|touched| touched.writes.contains(&at) || touched.reads.contains(&at));
    }

    pub(super) fn note_memory(&self) {
        self.uses_memory.set(true);
    }

    fn refuse(&mut self, those: impl Fn(&Touched) -> bool) {
        for at in &self.open {
            let open = &mut self.all[*at];
            open.is_refused |= those(&open.touched);
        }
    }

    fn skip(&mut self) {
        if self.end.is_some() {
            self.skips = true;
            let of_end = self.all.iter_mut();
            for open in of_end.filter(|it| Some(it.key.0) == self.end) {
                open.is_refused = true;
            }
        }
    }

    /// Notes that the code behind the end `at` of the parser is made.
    pub(super) fn come_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Begins the ingress behind an end of the parser.
    pub(super) fn begin(&mut self) {
        if !matches!(self.pass, Pass::Plain) {
            self.end = Some(self.at);
            self.skips = false;
        }
    }

    /// Ends it; others read the words `kept` behind it.
    pub(super) fn finish(&mut self, kept: &[bool]) {
        let is_kept = |at: &usize| kept.get(*at) == Some(&true);
        self.refuse(|touched| touched.writes.iter().any(is_kept));
        self.open.clear();
        self.end = None;
    }

    /// The lookups behind which the code goes on.
    pub(super) fn opened(&self) -> Vec<usize> {
        self.open.clone()
    }

    /// Begins another branch, before which these were open; gives those open at the end of the one
    /// before.
    pub(super) fn reopen(&mut self, before: &[usize]) -> Vec<usize> {
        std::mem::replace(&mut self.open, before.to_vec())
    }

    /// Joins the branches that go on, each with the lookups open at its end: those of one alone of
    /// several are not deferred.
    pub(super) fn join(&mut self, before: Vec<usize>, branches: Vec<Vec<usize>>) {
        if let [only] = branches.as_slice() {
            self.open.clone_from(only);
            return;
        }
        for at in branches.iter().flatten().filter(|at| !before.contains(at)) {
            self.all[*at].is_refused = true;
        }
        self.open = before;
    }

    fn is_constant(&mut self, program: &Program, register: usize) -> bool {
        let constant = self.constant.get_or_insert_with(|| {
            let mut constant = vec![true; program.registers.len()];
            each_op(program, &mut |op| {
                if let Op::RegisterWrite { register, .. } = op {
                    constant[register.index()] = false;
                }
            });
            constant
        });
        constant[register]
    }
}

impl Gen<'_, '_> {
    /// Makes a statement, or defers it to the side exits behind it.
    pub(super) fn stmt_or_defer(&mut self, stmt: &Stmt) {
        if !self.may_be_deferred(stmt) {
            return self.stmt(stmt);
        }
        let end = self.deferred.end.unwrap_or_default();
        let key = (end, self.path().clone());
        let chosen = match &self.deferred.pass {
            Pass::Plain => None,
            Pass::Finds => Some(Touched::default()),
            Pass::Defers(chosen) => chosen.get(&key).cloned(),
        };
        let Some(touched) = chosen else {
            return self.stmt(stmt);
        };
        let condition = match stmt {
            Stmt::If { condition, .. } => Some(self.condition(condition)),
            _ => None,
        };
        if condition.is_some_and(|it| self.known(it) == Some(0)) {
            return;
        }
        let mut open = Open {
            key,
            touched,
            is_refused: false,
            deferred: None,
        };
        if matches!(self.deferred.pass, Pass::Finds) {
            self.deferred.recorded = Some(Touched::default());
            self.deferred.uses_memory.set(false);
            self.look_up_now(stmt, condition);
            open.touched = self.deferred.recorded.take().unwrap_or_default();
            open.is_refused = self.deferred.uses_memory.get();
        } else {
            open.deferred = Some((stmt.clone(), condition, self.bases.clone()));
        }
        self.deferred.open.push(self.deferred.all.len());
        self.deferred.all.push(open);
    }

    /// Makes a lookup whose condition, if it has one, is known.
    fn look_up_now(&mut self, stmt: &Stmt, condition: Option<Value>) {
        self.free_scratch();
        self.closed(|g| match stmt {
            Stmt::If { then, .. } => g.guarded(condition, |g| g.stmts(then)),
            _ => g.stmt(stmt),
        });
    }

    /// Makes the deferred lookups, in a side exit.
    pub(super) fn make_deferred(&mut self) {
        for at in self.deferred.opened() {
            let Some((stmt, condition, bases)) = self.deferred.all[at].deferred.take() else {
                continue;
            };
            self.deferred.is_made = true;
            let bases = std::mem::replace(&mut self.bases, bases);
            let cold = std::mem::replace(&mut self.cold, true);
            self.look_up_now(&stmt, condition);
            self.cold = cold;
            let bases = std::mem::replace(&mut self.bases, bases);
            self.deferred.is_made = false;
            self.deferred.all[at].deferred = Some((stmt, condition, bases));
        }
    }

    /// A path leads past the statements that follow: to the end of a loop or of a callable, which
    /// lies within one statement where no side exits are, unless it leaves `closed` code too.
    pub(super) fn note_skip(&mut self, stays: bool) {
        if self.live && (self.leaves() || !stays) {
            self.deferred.skip();
        }
    }

    /// True if a statement is a lookup whose results follow from values alone.
    fn may_be_deferred(&mut self, stmt: &Stmt) -> bool {
        if self.deferred.end.is_none()
            || self.deferred.recorded.is_some()
            || self.deferred.skips
            || !self.live
            || !self.leaves()
        {
            return false;
        }
        let looks_up = match stmt {
            Stmt::Apply { .. } => true,
            Stmt::If {
                then, otherwise, ..
            } => {
                let applies = |stmt: &Stmt| matches!(stmt, Stmt::Apply { .. });
                otherwise.is_empty() && then.iter().any(applies)
            }
            _ => false,
        };
        looks_up && self.follows_from_values(std::slice::from_ref(stmt))
    }

    fn follows_from_values(&mut self, stmts: &[Stmt]) -> bool {
        let program = self.program();
        stmts.iter().all(|stmt| match stmt {
            Stmt::Assign(..) | Stmt::At(_) => true,
            Stmt::If {
                then, otherwise, ..
            } => self.follows_from_values(then) && self.follows_from_values(otherwise),
            Stmt::Block(stmts) => self.follows_from_values(stmts),
            Stmt::Op(Op::RegisterRead { register, .. }) => {
                self.plan.lock_of_register(*register).is_none()
                    && self.deferred.is_constant(program, register.index())
            }
            Stmt::Apply { table, .. } => {
                let table = &program.tables[table.index()];
                table.direct_counter.is_none()
                    && table.direct_meter.is_none()
                    && !table.support_timeout
                    && table.implementation.is_none()
                    && table.actions.iter().all(|listed| {
                        let action = &program.actions[listed.action.index()];
                        self.follows_from_values(&action.body)
                    })
            }
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Compiled;

    /// Lookups deferred in a program with the tables `wide` and `narrow`, which set `one` and `two`, the
    /// register `given`, and the field `f`; ingress does `body`.
    fn deferred(body: &str) -> usize {
        let text = format!(
            "#include <v1model.p4>
            header h_t {{ bit<8> f; bit<8> g; }}
            struct headers_t {{ h_t h; }}
            struct meta_t {{ bit<8> for_egress; }}
            parser P(packet_in p, out headers_t hdr, inout meta_t meta,
                     inout standard_metadata_t std) {{
                state start {{ p.extract(hdr.h); transition accept; }}
            }}
            control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
            control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
                register<bit<8>>(1) given;
                register<bit<8>>(1) written;
                bit<8> key; bit<8> one = 1; bit<8> two = 2; bit<8> read = 3;
                action set_one(bit<8> value) {{ one = value; }}
                action set_two(bit<8> value) {{ two = value; meta.for_egress = value; }}
                table wide {{ key = {{ key: exact; }} actions = {{ set_one; }}
                    default_action = set_one(5); }}
                table narrow {{ actions = {{ set_two; }} default_action = set_two(6); }}
                direct_counter(CounterType.packets) hits;
                action counted(bit<8> value) {{ one = value; hits.count(); }}
                table counts {{ key = {{ key: exact; }} actions = {{ counted; }}
                    default_action = counted(5); counters = hits; }}
                apply {{
                    std.egress_spec = 1;
                    key = hdr.h.f & 15;
                    {body}
                    if (hdr.h.g == 7) @unlikely {{ hdr.h.g = one + two + read; }}
                }}
            }}
            control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
                apply {{ hdr.h.f = hdr.h.f ^ meta.for_egress; }}
            }}
            control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
            control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr.h); }} }}
            V1Switch(P(), V(), I(), E(), C(), D()) main;"
        );
        let program = stateplane_compile::text(text).program();
        let program = program.unwrap_or_else(|refused| panic!("{refused}"));
        let compiled = Compiled::verified(program).unwrap();
        compiled.0.code.deferred
    }

    #[test]
    fn what_side_exits_alone_read_is_deferred() {
        assert_eq!(deferred("wide.apply();"), 1);
        assert_eq!(
            deferred("if (hdr.h.f != 3) { wide.apply(); given.read(read, 0); }"),
            1
        );
    }

    #[test]
    fn a_lookup_whose_results_others_read_is_made_in_place() {
        assert_eq!(deferred("wide.apply(); hdr.h.f = one;"), 0);
        // Egress reads them.
        assert_eq!(deferred("narrow.apply();"), 0);
    }

    #[test]
    fn a_lookup_is_made_before_what_it_reads_changes() {
        assert_eq!(deferred("wide.apply(); key = key + 1; hdr.h.f = key;"), 0);
        assert_eq!(deferred("wide.apply(); one = one + 1;"), 0);
        let written =
            "if (hdr.h.f != 3) { wide.apply(); written.read(read, 0); } written.write(0, key);";
        assert_eq!(deferred(written), 0);
    }

    #[test]
    fn a_lookup_that_is_seen_is_made_in_place() {
        assert_eq!(deferred("counts.apply();"), 0);
    }

    #[test]
    fn a_lookup_on_one_path_of_several_is_made_in_place() {
        let body = "if (hdr.h.f == 3) { hdr.h.f = 4; wide.apply(); } else { hdr.h.f = 5; }";
        assert_eq!(deferred(body), 0);
        assert_eq!(
            deferred("if (hdr.h.f == 3) { hdr.h.f = 4; exit; } wide.apply();"),
            0
        );
    }
}
