//! Text in front of the program.

use super::{Added, Emit, snapshot};
use crate::Class;
use std::fmt::Write as _;

/// ms by which `backing_ms` of a store exceeds `term_ms`, as in its defaults.
const BACKED_MORE_MS: u32 = 300;

impl Emit<'_> {
    pub(super) fn front(&self, added: &Added, renamed: &[&String], class: &Class) -> String {
        let name = self.input.main_file;
        let name = name.rsplit('/').next().unwrap_or(name);
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "// Made by `stateplane protect` of {name}: change that one, not this.\n\
             //\n\
             // Store servers need:\n\
             //\n"
        );
        if let Some(period) = class.lease_period {
            let _ = writeln!(
                out,
                "//     [replication]\n//     term_ms = {period}\n//     backing_ms = {}\n//",
                period.saturating_add(BACKED_MORE_MS)
            );
        }
        let _ = write!(
            out,
            "//     [[replication.class]]\n\
             //     id = {}\n\
             //     state_length = {}\n\
             //     first_lease = \"zero\"\n",
            class.id, class.state_length,
        );
        match self.plan {
            None => out.push_str(
                "//\n\
                 // and switches the section [replication], as lab/nat/switch.toml has it.\n\n",
            ),
            Some(plan) => snapshot::needs(plan, class, &mut out),
        }
        let _ = write!(
            out,
            "#include <core.p4>\n#include <v1model.p4>\n\n\
             #define REPLICATION_STATE_BITS {}\n",
            u32::from(class.state_length) * 8,
        );
        if let Some(plan) = self.plan {
            snapshot::includes(plan, &mut out);
        }
        if !renamed.is_empty() {
            out.push_str("// The program has names that the library has, too.\n");
        }
        for name in renamed {
            let _ = writeln!(out, "#define {name} {}", added.names.library(name));
        }
        out.push_str(match self.plan {
            None => "#include \"replication.p4\"\n",
            Some(_) => "#include \"snapshot.p4\"\n",
        });
        for name in renamed {
            let _ = writeln!(out, "#undef {name}");
        }
        let shards = added.names.free("PROTECTED_SHARDS");
        let _ = write!(
            out,
            "\n// Parts of the key space, as many as the store has.\n\
             #ifndef {shards}\n#define {shards} 4\n#endif\n\n",
        );
        if let Some(plan) = self.plan {
            snapshot::arrays(plan, added, &mut out);
            return out;
        }
        let _ = write!(
            out,
            "// What is replicated of a flow.\nstruct {} {{\n",
            added.state_type
        );
        for field in &self.fields.all {
            let kind = if field.signed { "int" } else { "bit" };
            let _ = writeln!(out, "    {kind}<{}> {};", field.bits, field.name);
        }
        out.push_str("}\n\n");
        out
    }
}
