//! Types, the structs of headers and metadata, and functions.

use super::features::Feature;
use super::{Block, Callable, Direction, Header, HeaderPlace, Maker, Place, StackPlace};
use crate::expr::Ty;

/// Bits of the field that says how long a `varbit` field is, in bytes.
pub(super) const LENGTH_BITS: u32 = 8;

/// Bits of that field that count.
pub(super) const LENGTH_MASK: u32 = 7;

impl Maker {
    pub(super) fn declarations(&mut self) {
        if self.has(Feature::Verify) {
            self.errors = 2;
            self.line("error { Own0, Own1 }");
        }
        if self.has(Feature::Enum) {
            self.enums = 1;
            self.line("enum e0_t { m0, m1, m2 }");
        }
        if self.has(Feature::Serial) {
            for number in 0..self.c.between(1, 2) {
                let width = self.c.one_of([2, 8, 16, 48]);
                self.serials.push(width);
                let other = self.c.between(2, 3);
                self.open(format_args!("enum bit<{width}> s{number}_t"));
                self.line(format_args!("m0 = 0, m1 = 1, m2 = {other}"));
                self.close();
            }
        }
        for number in 0..self.c.between(2, 5) {
            let header = self.header();
            self.declare_header(number as usize, &header);
            self.headers.push(header);
        }
        if self.has(Feature::Varbit) {
            let header = Header {
                fields: vec![
                    ("length".to_owned(), Ty::Bits(LENGTH_BITS)),
                    ("more".to_owned(), Ty::Bits(self.c.one_of([8, 24]))),
                ],
                varbits: vec![self.c.one_of([24, 56, 160, 8032])],
            };
            self.declare_header(self.headers.len(), &header);
            let many = self.several_varbits(header.varbits[0]);
            self.headers.push(header);
            self.declare_header(self.headers.len(), &many);
            self.headers.push(many);
        }
        self.metadata_struct();
        if self.c.chance(70) {
            self.report_header();
        }
        self.headers_struct();
    }

    /// A header for all metadata, so that the end of a frame shows their final values.
    fn report_header(&mut self) {
        let fields: Vec<(String, Ty)> = self
            .scope
            .iter()
            .filter(|place| place.ty.width().is_some())
            .map(|place| (place.text.clone(), place.ty))
            .collect();
        self.open("header report_t");
        let mut bits = 0;
        for (number, (_, ty)) in fields.iter().enumerate() {
            bits += ty.width().unwrap_or(0);
            self.line(format_args!("{ty} r{number};"));
        }
        if bits % 8 != 0 {
            self.line(format_args!("bit<{}> pad;", 8 - bits % 8));
        }
        self.close();
        self.reported = fields.into_iter().map(|(text, _)| text).collect();
    }

    /// A header with several `varbit` fields, which no packet has: they get their values from a
    /// header whose `varbit` field has `width`.
    fn several_varbits(&mut self, width: u32) -> Header {
        let other = self.c.one_of([24, 56, 160]);
        let varbits = match self.c.below(2) {
            0 => vec![width, width],
            _ => vec![width, other, width],
        };
        let fields = (0..varbits.len()).map(|number| (format!("m{number}"), Ty::Bits(8)));
        Header {
            fields: fields.collect(),
            varbits,
        }
    }

    /// Fields of odd widths, whose sum is a multiple of 8.
    fn header(&mut self) -> Header {
        let mut fields = Vec::new();
        let mut bits = 0;
        for number in 0..self.c.between(1, 5) {
            let ty = self.data_type();
            bits += ty.width().unwrap_or(0);
            fields.push((format!("f{number}"), ty));
        }
        if bits % 8 != 0 {
            let number = fields.len();
            fields.push((format!("f{number}"), Ty::Bits(8 - bits % 8)));
        }
        Header {
            fields,
            varbits: Vec::new(),
        }
    }

    fn declare_header(&mut self, number: usize, header: &Header) {
        self.open(format_args!("header h{number}_t"));
        let first = header.fields.len() - header.varbits.len();
        for (position, (name, ty)) in header.fields.iter().enumerate() {
            self.line(format_args!("{ty} {name};"));
            let number = position.checked_sub(first);
            if let Some(number) = number.filter(|number| *number < header.varbits.len()) {
                let width = header.varbits[number];
                self.line(format_args!("varbit<{width}> rest{number};"));
            }
        }
        self.close();
    }

    /// Makes the headers of a place known, with its fields.
    fn add_header(&mut self, text: &str, header: usize) {
        self.header_places.push(HeaderPlace {
            text: text.to_owned(),
            header,
        });
        for (name, ty) in self.headers[header].fields.clone() {
            self.scope.push(Place {
                text: format!("{text}.{name}"),
                ty,
                writable: true,
            });
        }
    }

    fn headers_struct(&mut self) {
        let plain: Vec<usize> = (0..self.headers.len())
            .filter(|header| self.headers[*header].varbits.is_empty())
            .collect();
        let mut fields = Vec::new();
        if !self.reported.is_empty() {
            fields.push("report_t report;".to_owned());
            self.members.push("report".to_owned());
        }
        if self.has(Feature::Union) && plain.len() > 1 {
            let (one, other) = (plain[0], plain[1]);
            self.open("header_union u_t");
            self.line(format_args!("h{one}_t a;"));
            self.line(format_args!("h{other}_t b;"));
            self.close();
            fields.push("u_t u;".to_owned());
            self.members.push("u".to_owned());
            self.add_header("hdr.u.a", one);
            self.add_header("hdr.u.b", other);
        }
        if self.has(Feature::NestedHeaders) {
            let one = plain[self.c.below(plain.len())];
            self.open("struct nested_t");
            self.line(format_args!("h{one}_t x;"));
            self.line(format_args!("h{one}_t y;"));
            self.close();
            fields.push("nested_t n;".to_owned());
            self.members.push("n".to_owned());
            self.add_header("hdr.n.x", one);
            self.add_header("hdr.n.y", one);
        }
        for header in 0..self.headers.len() {
            fields.push(format!("h{header}_t h{header};"));
            self.members.push(format!("h{header}"));
            self.add_header(&format!("hdr.h{header}"), header);
        }
        if self.has(Feature::Stack) {
            let header = plain[self.c.below(plain.len())];
            let size = self.c.between(1, 4);
            fields.push(format!("h{header}_t[{size}] stack;"));
            self.members.push("stack".to_owned());
            self.stacks.push(StackPlace {
                text: "hdr.stack".to_owned(),
                header,
                size,
            });
            for index in 0..size {
                self.add_header(&format!("hdr.stack[{index}]"), header);
            }
        }
        self.open("struct headers_t");
        for field in fields {
            self.line(field);
        }
        self.close();
    }

    fn metadata_struct(&mut self) {
        if self.has(Feature::StructOps) {
            for number in 0..self.c.between(1, 3) {
                let ty = self.data_type();
                self.inner_fields.push((format!("i{number}"), ty));
            }
            self.open("struct inner_t");
            for (name, ty) in self.inner_fields.clone() {
                self.line(format_args!("{ty} {name};"));
                self.scope.push(Place {
                    text: format!("meta.inner.{name}"),
                    ty,
                    writable: true,
                });
            }
            self.close();
        }
        self.field_lists = 2;
        self.open("struct meta_t");
        // Types that much else needs something to read and write of.
        let mut types = vec![Ty::Bits(8), Ty::Bits(16), Ty::Bits(32), Ty::Bool];
        for _ in 0..self.c.between(2, 6) {
            types.push(self.variable_type());
        }
        for (number, ty) in types.into_iter().enumerate() {
            if self.c.chance(40) && ty.width().is_some() {
                let lists = self.c.one_of(["1", "2", "1, 2"]);
                self.line(format_args!("@field_list({lists})"));
            }
            self.line(format_args!("{ty} m{number};"));
            self.scope.push(Place {
                text: format!("meta.m{number}"),
                ty,
                writable: true,
            });
        }
        if !self.inner_fields.is_empty() {
            if self.c.chance(40) {
                self.line("@field_list(2)");
            }
            self.line("inner_t inner;");
        }
        self.close();
    }

    /// A list of parameters in brackets, which come into scope.
    pub(super) fn parameters(&mut self, params: &[(Direction, Ty)]) -> String {
        let mut texts = Vec::new();
        for (direction, ty) in params {
            let name = self.fresh("p");
            texts.push(format!("{}{ty} {name}", direction.word()));
            self.scope.push(Place {
                text: name,
                ty: *ty,
                writable: matches!(direction, Direction::Out | Direction::InOut),
            });
        }
        texts.join(", ")
    }

    /// Runs `with` in a scope of its own: what it declares is gone behind it.
    pub(super) fn scoped(&mut self, with: impl FnOnce(&mut Self)) {
        let (scope, headers, stacks) = (
            self.scope.len(),
            self.header_places.len(),
            self.stacks.len(),
        );
        with(self);
        self.scope.truncate(scope);
        self.header_places.truncate(headers);
        self.stacks.truncate(stacks);
    }

    pub(super) fn functions(&mut self) {
        if !self.has(Feature::Function) {
            return;
        }
        // Functions see nothing but their parameters.
        let outside = (
            std::mem::take(&mut self.scope),
            std::mem::take(&mut self.header_places),
            std::mem::take(&mut self.stacks),
        );
        self.block = Block::Function;
        self.in_action = true;
        for number in 0..self.c.between(1, 3) {
            let mut params = Vec::new();
            for _ in 0..self.c.between(1, 3) {
                let direction = self.c.one_of([
                    Direction::In,
                    Direction::In,
                    Direction::InOut,
                    Direction::Out,
                ]);
                let ty = self.variable_type();
                params.push((direction, ty));
            }
            let result = if self.c.chance(75) {
                Some(self.variable_type())
            } else {
                None
            };
            let name = format!("fun{number}");
            self.scoped(|maker| {
                let list = maker.parameters(&params);
                let ty = result.map_or("void".to_owned(), |ty| ty.to_string());
                maker.open(format_args!("{ty} {name}({list})"));
                let count = maker.c.between(1, 4);
                maker.statements(count, 1);
                if let Some(ty) = result {
                    if maker.has(Feature::Return) && maker.c.chance(40) {
                        let (condition, early) = (maker.expr(Ty::Bool, 2), maker.expr(ty, 2));
                        maker.line(format_args!("if ({condition}) {{ return {early}; }}"));
                    }
                    let value = maker.expr(ty, 3);
                    maker.line(format_args!("return {value};"));
                }
                maker.close();
            });
            self.functions.push(Callable {
                name,
                params,
                result,
            });
        }
        self.in_action = false;
        (self.scope, self.header_places, self.stacks) = outside;
    }
}
