//! Statements.

use super::features::Feature;
use super::{Block, Callable, Maker, Place};
use crate::expr::Ty;

impl Maker {
    /// `count` statements, in which blocks nest at most `depth` deep.
    pub(super) fn statements(&mut self, count: u32, depth: u32) {
        for _ in 0..count {
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: u32) {
        let packet_work = self.block != Block::Function;
        match self.c.below(20) {
            0..=5 => self.assign(),
            6 | 7 if depth > 0 => self.branch(depth),
            8 if depth > 0 && self.has(Feature::Switch) && self.block != Block::Parser => {
                self.choice(depth);
            }
            9 if depth > 0 && self.has(Feature::Loop) && self.block != Block::Parser => {
                self.repeat(depth);
            }
            10 => self.local(),
            11 => self.call(),
            12 if packet_work && self.has(Feature::HeaderOps) => self.header_operation(),
            13 if packet_work && !self.inner_fields.is_empty() => self.struct_operation(),
            14 | 15 if matches!(self.block, Block::Ingress | Block::Egress) => self.operation(),
            16 | 17 if matches!(self.block, Block::Ingress | Block::Egress) && !self.in_action => {
                self.apply(depth);
            }
            18 if depth > 0 && self.block != Block::Parser => self.nested(depth),
            _ => self.assign(),
        }
    }

    fn assign(&mut self) {
        let Some((place, ty)) = self.writable_any() else {
            return;
        };
        let Ty::Bits(width) = ty else {
            let value = self.expr(ty, 3);
            return self.line(format_args!("{place} = {value};"));
        };
        if width > 1 && self.has(Feature::Slice) && self.c.chance(20) {
            let high = self.c.between(0, width - 1);
            let low = self.c.between(0, high);
            let value = self.expr(Ty::Bits(high - low + 1), 3);
            return self.line(format_args!("{place}[{high}:{low}] = {value};"));
        }
        if self.block != Block::Function
            && self.c.chance(10)
            && let Some(stack) = self.c.pick(&self.stacks).cloned()
        {
            let fields = self.headers[stack.header].fields.clone();
            if let Some((field, ty)) = self.c.pick(&fields).cloned()
                && let Some(index) = self.stack_index()
            {
                let value = self.expr(ty, 2);
                let stack = stack.text;
                return self.line(format_args!("{stack}[{index}].{field} = {value};"));
            }
        }
        let value = self.expr(ty, 3);
        self.line(format_args!("{place} = {value};"));
    }

    fn body(&mut self, depth: u32) {
        let count = self.c.between(1, 3);
        self.scoped(|maker| maker.statements(count, depth - 1));
    }

    fn branch(&mut self, depth: u32) {
        let condition = self.expr(Ty::Bool, 3);
        const HINTS: [&str; 4] = ["", "", " @likely", " @unlikely"];
        let hint = self.c.one_of(HINTS);
        self.open(format_args!("if ({condition}){hint}"));
        self.body(depth);
        self.leave();
        if self.c.chance(50) {
            let hint = self.c.one_of(HINTS);
            self.close_with(&format!("}} else{hint} {{"));
            self.indent += 1;
            self.body(depth);
        }
        self.close();
    }

    /// Perhaps writes a statement that leaves the block.
    fn leave(&mut self) {
        if self.block == Block::Parser {
            return;
        }
        if self.loops > 0 && self.c.chance(25) {
            let way = self.c.one_of(["break;", "continue;"]);
            return self.line(way);
        }
        let in_function = self.block == Block::Function;
        match self.c.below(16) {
            0 if self.has(Feature::Return) && !in_function => self.line("return;"),
            1 if self.has(Feature::Exit) && !in_function => self.line("exit;"),
            _ => {}
        }
    }

    fn nested(&mut self, depth: u32) {
        let head = if self.has(Feature::Register) && self.block != Block::Function {
            self.c.one_of(["@atomic ", ""])
        } else {
            ""
        };
        self.line(format_args!("{head}{{"));
        self.indent += 1;
        self.body(depth);
        self.close();
    }

    fn choice(&mut self, depth: u32) {
        let ty = if self.c.chance(25) && !self.serials.is_empty() {
            Ty::Serial(0, self.serials[0])
        } else {
            Ty::Bits(self.c.one_of([2, 8, 16]))
        };
        let value = self.expr(ty, 2);
        self.open(format_args!("switch ({value})"));
        for label in 0..self.c.between(1, 3) {
            match ty {
                Ty::Serial(..) => self.open(format_args!("{ty}.m{label}:")),
                _ => {
                    if ty != Ty::Bits(2) && self.c.chance(20) {
                        self.line(format_args!("{}:", label + 10));
                    }
                    self.open(format_args!("{label}:"));
                }
            }
            self.body(depth);
            self.close();
        }
        if self.c.chance(60) {
            self.open("default:");
            self.body(depth);
            self.close();
        }
        self.close();
    }

    fn repeat(&mut self, depth: u32) {
        let name = self.fresh("i");
        let end = self.c.between(1, 5);
        if self.c.chance(50) {
            self.open(format_args!("for (bit<8> {name} in 0 .. {end})"));
        } else {
            self.open(format_args!(
                "for (bit<8> {name} = 0; {name} < {end}; {name} = {name} + 1)"
            ));
        }
        self.loops += 1;
        self.scoped(|maker| {
            maker.scope.push(Place {
                text: name,
                ty: Ty::Bits(8),
                writable: false,
            });
            maker.body(depth);
            maker.leave();
        });
        self.loops -= 1;
        self.close();
    }

    pub(super) fn local(&mut self) {
        let name = self.fresh("v");
        let ty = self.variable_type();
        if self.c.chance(80) {
            let value = self.expr(ty, 3);
            self.line(format_args!("{ty} {name} = {value};"));
        } else {
            // Read before it is written, perhaps: variables begin as zero.
            self.line(format_args!("{ty} {name};"));
        }
        self.scope.push(Place {
            text: name,
            ty,
            writable: true,
        });
    }

    fn call(&mut self) {
        let mut callables: Vec<Callable> = self
            .functions
            .iter()
            .filter(|function| function.result.is_none())
            .cloned()
            .collect();
        if matches!(self.block, Block::Ingress | Block::Egress) && !self.in_action {
            callables.extend(self.objects.actions.iter().cloned());
        }
        let Some(callable) = self.c.pick(&callables).cloned() else {
            return self.assign();
        };
        if let Some(args) = self.arguments(&callable) {
            self.line(format_args!("{}({args});", callable.name));
        }
    }

    pub(super) fn header_operation(&mut self) {
        if self.c.chance(25)
            && let Some(stack) = self.c.pick(&self.stacks).cloned()
        {
            let way = self.c.one_of(["push_front", "pop_front"]);
            let count = self.c.between(1, stack.size);
            return self.line(format_args!("{}.{way}({count});", stack.text));
        }
        if self.has(Feature::Varbit) && self.c.chance(20) && self.assign_varbit() {
            return;
        }
        let Some(header) = self.c.pick(&self.header_places).cloned() else {
            return self.assign();
        };
        let text = &header.text;
        match self.c.below(5) {
            0 => self.line(format_args!("{text}.setValid();")),
            1 => self.line(format_args!("{text}.setInvalid();")),
            2 | 3 => {
                let others: Vec<String> = self
                    .header_places
                    .iter()
                    .filter(|other| other.header == header.header)
                    .map(|other| other.text.clone())
                    .collect();
                if let Some(other) = self.c.pick(&others) {
                    let text = format!("{text} = {other};");
                    self.line(text);
                }
            }
            _ if self.headers[header.header].varbits.is_empty() => {
                let fields = self.headers[header.header].fields.clone();
                let values: Vec<String> = fields
                    .iter()
                    .map(|(_, ty)| self.expr(*ty, 2).to_string())
                    .collect();
                self.line(format_args!("{text} = {{ {} }};", values.join(", ")));
            }
            _ => self.line(format_args!("{text}.setValid();")),
        }
    }

    /// Assigns a `varbit` field to one of the same width. False if none is visible.
    fn assign_varbit(&mut self) -> bool {
        let mut fields: Vec<(String, u32)> = Vec::new();
        for place in &self.header_places {
            let widths = &self.headers[place.header].varbits;
            let named = widths.iter().enumerate();
            fields.extend(named.map(|(number, width)| {
                let text = format!("{}.rest{number}", place.text);
                (text, *width)
            }));
        }
        let Some((target, width)) = self.c.pick(&fields).cloned() else {
            return false;
        };
        fields.retain(|(text, other)| *other == width && *text != target);
        let Some((source, _)) = self.c.pick(&fields).cloned() else {
            return false;
        };
        self.line(format_args!("{target} = {source};"));
        true
    }

    fn struct_operation(&mut self) {
        match self.c.below(3) {
            0 => {
                let fields = self.inner_fields.clone();
                let values: Vec<String> = fields
                    .iter()
                    .map(|(name, ty)| format!("{name} = {}", self.expr(*ty, 2)))
                    .collect();
                self.line(format_args!("meta.inner = {{ {} }};", values.join(", ")));
            }
            1 => {
                let name = self.fresh("v");
                self.line(format_args!("inner_t {name} = meta.inner;"));
                for (field, ty) in self.inner_fields.clone() {
                    self.scope.push(Place {
                        text: format!("{name}.{field}"),
                        ty,
                        writable: true,
                    });
                }
            }
            _ => {
                let fields = self.inner_fields.clone();
                let values: Vec<String> = fields
                    .iter()
                    .map(|(_, ty)| self.expr(*ty, 2).to_string())
                    .collect();
                let name = self.fresh("v");
                self.line(format_args!(
                    "bool {name} = (meta.inner == {{ {} }});",
                    values.join(", ")
                ));
                self.scope.push(Place {
                    text: name,
                    ty: Ty::Bool,
                    writable: true,
                });
            }
        }
    }

    /// Applies a table or a control.
    fn apply(&mut self, depth: u32) {
        let (tables, controls) = (self.objects.tables.clone(), self.objects.controls.clone());
        if self.c.chance(30)
            && let Some(control) = self.c.pick(&controls)
        {
            if let Some(args) = self.arguments(control) {
                let more = if args.is_empty() { "" } else { ", " };
                self.line(format_args!(
                    "{}.apply(hdr, meta, std{more}{args});",
                    control.name
                ));
            }
            return;
        }
        let Some(table) = self.c.pick(&tables) else {
            return self.assign();
        };
        let name = &table.name;
        match self.c.below(4) {
            0 if depth > 0 => {
                let which = self.c.one_of(["hit", "miss"]);
                self.open(format_args!("if ({name}.apply().{which})"));
                self.body(depth);
                self.close();
            }
            1 if depth > 0 && self.has(Feature::Switch) => {
                self.open(format_args!("switch ({name}.apply().action_run)"));
                for action in &table.actions {
                    if self.c.chance(60) {
                        self.open(format_args!("{}:", action.name));
                        self.body(depth);
                        self.close();
                    }
                }
                self.open("default:");
                self.body(depth);
                self.close();
                self.close();
            }
            _ => self.line(format_args!("{name}.apply();")),
        }
    }

    /// Fields for a hash, checksum or digest, with an even number of bytes or not.
    pub(super) fn field_values(&mut self) -> String {
        let count = self.c.between(1, 4);
        let mut values = Vec::new();
        for _ in 0..count {
            if let Some(read) = self.read_any() {
                values.push(read.to_string());
            }
        }
        values.push(self.constant(Ty::Bits(16)).to_string());
        format!("{{ {} }}", values.join(", "))
    }
}
