//! Whole programs, and packets for them.

use crate::choices::Choices;
use crate::program::{Generated, PORTS};
use crate::session::{Arrival, LIMITS, Session, Write};
use stateplane_switch::SwitchConfig;
use std::fmt::{self, Display};

/// Elements of the stacks.
pub(super) const STACK: usize = 3;

/// Time in µs of the first packet.
const START_US: u64 = 1_000_000;

/// A type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bits(u32),
    Int(u32),
    Bool,
    Error,
    Mode,
    Code,
    Inner,
    Head,
    Item,
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Bits(width) => write!(f, "bit<{width}>"),
            Kind::Int(width) => write!(f, "int<{width}>"),
            Kind::Bool => f.write_str("bool"),
            Kind::Error => f.write_str("error"),
            Kind::Mode => f.write_str("mode_t"),
            Kind::Code => f.write_str("code_t"),
            Kind::Inner => f.write_str("inner_t"),
            Kind::Head => f.write_str("head_t"),
            Kind::Item => f.write_str("item_t"),
        }
    }
}

/// Fields of the types that have fields.
pub(super) fn fields(kind: Kind) -> &'static [(&'static str, Kind)] {
    match kind {
        Kind::Inner => &[
            ("p", Kind::Bits(8)),
            ("q", Kind::Bits(16)),
            ("e", Kind::Error),
            ("n", Kind::Mode),
            ("h", Kind::Head),
        ],
        Kind::Head => &[
            ("a", Kind::Bits(8)),
            ("b", Kind::Bits(16)),
            ("c", Kind::Int(8)),
            ("d", Kind::Bits(3)),
            ("f", Kind::Bool),
            ("g", Kind::Bits(4)),
            ("k", Kind::Code),
            ("w", Kind::Bits(72)),
        ],
        Kind::Item => &[("x", Kind::Bits(8)), ("y", Kind::Bits(8))],
        _ => &[],
    }
}

/// Direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    In,
    Out,
    InOut,
    /// Action data.
    Data,
}

impl Way {
    pub(super) fn word(self) -> &'static str {
        match self {
            Way::In => "in ",
            Way::Out => "out ",
            Way::InOut => "inout ",
            Way::Data => "",
        }
    }
}

/// A function, action or control.
#[derive(Clone, Debug)]
pub(super) struct Callable {
    pub(super) name: String,
    pub(super) params: Vec<(Way, Kind, String)>,
    /// The default of the last parameter.
    pub(super) default: bool,
    /// True if headers and metadata come before the parameters.
    pub(super) context: bool,
    pub(super) result: Option<Kind>,
}

/// A table with the names of its actions.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) actions: Vec<String>,
}

/// Site of the code that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    Function,
    Action,
    Parser,
    Apply,
}

/// Something that can be read, and perhaps written.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) text: String,
    pub(super) kind: Kind,
    pub(super) writable: bool,
}

/// Writes a program.
pub(super) struct Writer {
    pub(super) c: Choices,
    text: String,
    indent: usize,
    fresh: usize,
    pub(super) site: Site,
    /// Loops around the statements.
    pub(super) loops: u32,
    /// Remaining size that expressions may grow to.
    pub(super) fuel: u32,
    /// True if expressions may have side effects.
    pub(super) effects: bool,
    pub(super) scope: Vec<Place>,
    /// Stacks in scope.
    pub(super) stacks: Vec<String>,
    /// Names that were used last, to be used again.
    pub(super) recent: Vec<String>,
    pub(super) own_errors: usize,
    pub(super) functions: Vec<Callable>,
    pub(super) actions: Vec<Callable>,
    pub(super) tables: Vec<Table>,
    pub(super) controls: Vec<Callable>,
    /// Kind of the value that `return` returns; `None` where it returns nothing.
    pub(super) result: Option<Kind>,
    /// Entries of the control plane.
    pub(super) writes: Vec<Write>,
}

/// Makes a program and a session of `packets` packets for it. Equal seeds give equal
/// results.
#[must_use]
pub fn generate(seed: u64, packets: usize) -> Generated {
    let mut writer = Writer {
        c: Choices::new(seed),
        text: String::new(),
        indent: 0,
        fresh: 0,
        site: Site::Function,
        loops: 0,
        fuel: 0,
        effects: true,
        scope: Vec::new(),
        stacks: Vec::new(),
        recent: Vec::new(),
        own_errors: 0,
        functions: Vec::new(),
        actions: Vec::new(),
        tables: Vec::new(),
        controls: Vec::new(),
        result: None,
        writes: Vec::new(),
    };
    writer.program();
    let session = writer.session(packets);
    Generated {
        program: writer.text,
        session,
    }
}

impl Writer {
    pub(super) fn line(&mut self, text: impl Display) {
        for _ in 0..self.indent {
            self.text.push_str("    ");
        }
        self.text.push_str(&text.to_string());
        self.text.push('\n');
    }

    pub(super) fn open(&mut self, head: impl Display) {
        self.line(format_args!("{head} {{"));
        self.indent += 1;
    }

    pub(super) fn close(&mut self) {
        self.indent -= 1;
        self.line("}");
    }

    pub(super) fn fresh(&mut self, front: &str) -> String {
        self.fresh += 1;
        format!("{front}{}", self.fresh)
    }

    /// Writes with the names in scope, and forgets those that are declared meanwhile.
    pub(super) fn scoped(&mut self, write: impl FnOnce(&mut Self)) {
        let (declared, stacks) = (self.scope.len(), self.stacks.len());
        write(self);
        self.scope.truncate(declared);
        self.stacks.truncate(stacks);
        self.recent.clear();
    }

    /// Brings a name into scope, with its fields.
    pub(super) fn declare(&mut self, text: &str, kind: Kind, writable: bool) {
        self.scope.push(Place {
            text: text.to_owned(),
            kind,
            writable,
        });
        for (field, kind) in fields(kind) {
            self.declare(&format!("{text}.{field}"), *kind, writable);
        }
    }

    fn program(&mut self) {
        let errors = self.c.below(3);
        let before = self.c.chance(50);
        if !before {
            self.line("#include <v1model.p4>");
        }
        if errors > 0 {
            let names: Vec<String> = (0..errors).map(|error| format!("Own{error}")).collect();
            self.line(format_args!("error {{ {} }}", names.join(", ")));
        }
        self.own_errors = errors;
        if before {
            self.line("#include <v1model.p4>");
        }
        let (byte, number) = (self.constant(Kind::Bits(8)), self.c.below(300));
        self.line(format_args!("const bit<8> BYTE = {byte};"));
        self.line(format_args!("const int NUMBER = {number};"));
        self.declare("BYTE", Kind::Bits(8), false);
        self.line("enum mode_t { slow, fast, idle }");
        self.line("enum bit<8> code_t { low = 3, middle = 0, high = 200 }");
        for (name, kind) in [
            ("header head_t", Kind::Head),
            ("header item_t", Kind::Item),
            ("struct inner_t", Kind::Inner),
        ] {
            self.open(name);
            for (field, kind) in fields(kind) {
                self.line(format_args!("{kind} {field};"));
            }
            self.close();
        }
        self.open("header report_t");
        for number in 0..12 {
            self.line(format_args!("bit<8> r{number};"));
        }
        self.close();
        self.open("struct headers_t");
        self.line("head_t first;");
        self.line("head_t second;");
        self.line(format_args!("item_t[{STACK}] items;"));
        self.line(format_args!("item_t[{STACK}] spare;"));
        self.line("report_t report;");
        self.line("head_t kept;");
        self.close();
        self.open("struct meta_t");
        self.line("bit<8> u;");
        self.line("bit<8> v;");
        self.line("bit<16> w;");
        self.line("int<8> i;");
        self.line("bool t;");
        self.line("error e;");
        self.line("mode_t n;");
        self.line("code_t k;");
        self.line("inner_t inner;");
        self.close();
        self.functions();
        self.parsers();
        self.line("control MyVerify(inout headers_t hdr, inout meta_t meta) { apply { } }");
        self.pipeline();
        self.egress();
        self.line("control MyCompute(inout headers_t hdr, inout meta_t meta) { apply { } }");
        self.line(
            "control MyDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }",
        );
        self.line("V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;");
    }

    /// Declares the parameters of the blocks in scope.
    pub(super) fn declare_context(&mut self) {
        self.declare("hdr.first", Kind::Head, true);
        self.declare("hdr.second", Kind::Head, true);
        for (field, kind) in [
            ("u", Kind::Bits(8)),
            ("v", Kind::Bits(8)),
            ("w", Kind::Bits(16)),
            ("i", Kind::Int(8)),
            ("t", Kind::Bool),
            ("e", Kind::Error),
            ("n", Kind::Mode),
            ("k", Kind::Code),
            ("inner", Kind::Inner),
        ] {
            self.declare(&format!("meta.{field}"), kind, true);
        }
        self.stacks.push("hdr.items".to_owned());
        self.stacks.push("hdr.spare".to_owned());
    }

    /// Egress shows in headers what metadata holds.
    fn egress(&mut self) {
        self.open(format_args!("control MyEgress({CONTEXT})"));
        self.open("apply");
        let truth = |condition: &str| format!("{condition} ? 8w1 : 8w0");
        let mut errors = String::from("8w99");
        for own in 0..self.own_errors {
            errors = format!("(shown == error.Own{own} ? 8w{} : {errors})", own + 10);
        }
        let known = [
            "NoError",
            "PacketTooShort",
            "NoMatch",
            "StackOutOfBounds",
            "ParserInvalidArgument",
        ];
        for (number, name) in known.iter().enumerate() {
            errors = format!("(shown == error.{name} ? 8w{} : {errors})", number + 1);
        }
        let modes = "(shown == mode_t.slow ? 8w1 : (shown == mode_t.fast ? 8w2 : \
                     (shown == mode_t.idle ? 8w3 : 8w9)))";
        self.line("hdr.report.setValid();");
        let texts = [
            "meta.u".to_owned(),
            "meta.v".to_owned(),
            "meta.w[15:8]".to_owned(),
            "meta.w[7:0]".to_owned(),
            "(bit<8>)meta.i".to_owned(),
            truth("meta.t"),
            errors.replace("shown", "meta.e"),
            errors.replace("shown", "std.parser_error"),
            modes.replace("shown", "meta.n"),
            "(bit<8>)meta.k".to_owned(),
            "meta.inner.p ^ meta.inner.q[15:8] ^ (meta.inner.q[7:0] << 1)".to_owned(),
            format!(
                "{} ^ {}",
                modes.replace("shown", "meta.inner.n"),
                errors.replace("shown", "meta.inner.e")
            ),
        ];
        for (number, text) in texts.iter().enumerate() {
            self.line(format_args!("hdr.report.r{number} = {text};"));
        }
        self.line("hdr.kept = meta.inner.h;");
        self.close();
        self.close();
    }

    fn session(&mut self, packets: usize) -> Session {
        let arrivals = (0..packets as u64).map(|number| {
            let length = match self.c.below(5) {
                0 => self.c.between(14, 40),
                _ => self.c.between(36, 60),
            };
            let frame = (0..length).map(|_| match self.c.below(3) {
                0 => self.c.below(256) as u8,
                1 => self.c.one_of([0, 1, 2, 3, 255]),
                _ => self.c.below(8) as u8,
            });
            let frame = frame.collect();
            Arrival {
                at: START_US + number * 100,
                port: self.c.below(usize::from(PORTS)) as u16,
                frame,
            }
        });
        let arrivals = arrivals.collect();
        Session {
            seed: 0,
            config: SwitchConfig {
                ports: (0..PORTS).collect(),
                limits: LIMITS,
                ..SwitchConfig::default()
            },
            writes: std::mem::take(&mut self.writes),
            updates: Vec::new(),
            arrivals,
        }
    }
}

/// The parameters of ingress and egress.
pub(super) const CONTEXT: &str =
    "inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std";
