//! Programs of the switch, and what their groups are.

use serde::{Deserialize, Serialize};
use stateplane_compile::{Source, shipped, text};
use stateplane_ir::Program as Ir;
use stateplane_synchronise::{Kind, Selection, synchronise};

/// The program of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// The packet counter, made with the library by hand: two groups of counters.
    PacketCounter,
    /// Levels and flows, instrumented by `stateplane sync`: a gauge, and a key beside its count.
    Levels,
    /// Counters of 8 and 16 bits, instrumented by `stateplane sync`, beside what they have counted.
    Narrow,
}

/// Groups of each program.
pub(crate) const GROUPS: usize = 2;

/// A group of a program.
pub(crate) struct Group {
    pub(crate) kind: Kind,
    /// Registers side by side, from the lowest bits of a value on, with their widths.
    pub(crate) registers: &'static [(&'static str, u32)],
    /// Register with what the locations of a counter have counted, if there is one.
    pub(crate) counted: Option<&'static str>,
}

impl Group {
    /// Bits of a value.
    pub(crate) fn bits(&self) -> u32 {
        self.registers.iter().map(|(_, bits)| bits).sum()
    }

    /// Distance of two values (rule 1 of `docs/sync-protocol.md`).
    pub(crate) fn distance(&self, from: u64, to: u64) -> u64 {
        let bits = self.bits();
        match self.kind {
            Kind::Counter => to.wrapping_sub(from) & (u64::MAX >> (64 - bits)),
            Kind::Gauge => to.abs_diff(from),
            Kind::Opaque => u64::from(from != to),
        }
    }
}

impl Program {
    /// Its groups.
    pub(crate) fn groups(self) -> &'static [Group; GROUPS] {
        match self {
            Program::PacketCounter => &[
                Group {
                    kind: Kind::Counter,
                    registers: &[("packets", 32)],
                    counted: None,
                },
                Group {
                    kind: Kind::Counter,
                    registers: &[("bytes", 64)],
                    counted: None,
                },
            ],
            Program::Levels => &[
                Group {
                    kind: Kind::Gauge,
                    registers: &[("level", 32)],
                    counted: None,
                },
                Group {
                    kind: Kind::Opaque,
                    registers: &[
                        ("LevelsIngress.flow", 32),
                        ("LevelsIngress.flow_packets", 16),
                    ],
                    counted: None,
                },
            ],
            Program::Narrow => &[
                Group {
                    kind: Kind::Counter,
                    registers: &[("packets", 8)],
                    counted: Some("counted_packets"),
                },
                Group {
                    kind: Kind::Counter,
                    registers: &[("bytes", 16)],
                    counted: Some("counted_bytes"),
                },
            ],
        }
    }

    /// Compiles it with macros; complaints as text.
    pub(crate) fn compile(
        self,
        locations: u32,
        mut macros: Vec<(String, String)>,
    ) -> Result<Ir, String> {
        let locations = locations.to_string();
        let compiled = match self {
            Program::PacketCounter => {
                macros.push(("PACKET_COUNTER_LOCATIONS".to_owned(), locations));
                let path = "apps/packet-counter/packet_counter.p4";
                shipped(path).defines(macros).program()
            }
            Program::Levels | Program::Narrow => {
                macros.push(("LOCATIONS".to_owned(), locations));
                let written = match self {
                    Program::Narrow => include_str!("narrow.p4"),
                    _ => include_str!("levels.p4"),
                };
                let source = text(written).defines(macros.clone());
                text(self.instrumented(&source)?).defines(macros).program()
            }
        };
        compiled.map_err(|refused| refused.to_string())
    }

    /// The text of the program with its registers in view, in the groups that the world expects.
    fn instrumented<L: stateplane_syntax::FileLoader>(
        self,
        source: &Source<L>,
    ) -> Result<String, String> {
        let (loader, options) = (source.loader(), source.options());
        let made = synchronise(loader, source.main_file(), options, Selection::Annotated);
        let Some((text, plan)) = made.program else {
            let color = stateplane_diagnostics::Color::Never;
            return Err(stateplane_diagnostics::render_all(
                &made.diagnostics,
                &made.sources,
                color,
            ));
        };
        let of = |group: &Group| (group.kind, group.registers.len());
        let expected: Vec<_> = self.groups().iter().map(of).collect();
        let groups = plan.groups.iter();
        let found: Vec<_> = groups.map(|it| (it.kind, it.registers.len())).collect();
        if found == expected {
            Ok(text)
        } else {
            Err(format!("the groups are others:\n{plan}"))
        }
    }
}
