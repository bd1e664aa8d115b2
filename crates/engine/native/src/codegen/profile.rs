//! Entries that run what an action profile holds.

use super::Gen;
use crate::run;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use stateplane_ir::{ActionProfileId, Expr, MatchKind, TableId};

impl Gen<'_, '_> {
    /// The record of what is run where the lookup in a table with an action profile found
    /// an entry, given by number, and the record's first word.
    pub(super) fn held(
        &mut self,
        id: TableId,
        profile: ActionProfileId,
        view: Value,
        found: Value,
    ) -> (Value, Value) {
        let program = self.program();
        let (context, table) = (self.context, self.number(u64::from(id.0)));
        let hash = self.b.declare_var(types::I64);
        self.set_number(hash, 0);
        if let Some(selector) = program.action_profiles[profile.index()].selector {
            let takes = run::takes_hash as *const u8;
            let takes = self.call_for(takes, &[context, table, found]);
            let keys = program.tables[id.index()].keys.iter();
            let keys = keys.filter(|key| key.match_kind == MatchKind::Selector);
            let data: Vec<Expr> = keys.map(|key| key.expr.clone()).collect();
            self.guarded(Some(takes), |g| {
                let value = g.algorithm(selector.algorithm, &data, false);
                g.b.def_var(hash, value);
            });
        }
        let hash = self.b.use_var(hash);
        let held = run::held as *const u8;
        let record = self.call_for(held, &[context, view, table, found, hash]);
        let flags = Self::flags(self.regions.state);
        let head = self.b.ins().load(types::I64, flags, record, 0);
        (record, head)
    }
}
