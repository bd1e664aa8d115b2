//! The parser, and the sub-parsers that it applies.

use super::declaration::LENGTH_MASK;
use super::features::Feature;
use super::packet::{Node, Take, Wanted};
use super::table::Kind;
use super::{Block, HeaderPlace, Maker, Place};
use crate::expr::{Expr, Ty};
use crate::session::Write;
use num_bigint::BigUint;
use stateplane_runtime::KeyMatch;

/// Source of the value of a key in a select.
#[derive(Clone, Debug)]
enum Source {
    /// Bits of what the state takes, or behind it.
    Frame { take: Option<usize>, offset: u32 },
    /// Anything else.
    Other,
}

impl Maker {
    /// Declares value sets whose members have the widths of fields, with members.
    fn declare_value_sets(&mut self, structs: Vec<(String, Vec<(Kind, u32)>)>) {
        if !self.has(Feature::ValueSet) {
            return;
        }
        for _ in 0..self.c.between(1, 2) {
            let Some(Ty::Bits(width)) = self.read_any().map(|read| read.ty()) else {
                continue;
            };
            let name = self.fresh("set");
            self.line(format_args!("value_set<bit<{width}>>(4) {name};"));
            for _ in 0..self.c.between(0, 3) {
                let keys = vec![KeyMatch::Exact(self.c.value(width))];
                self.writes.push(Write::Member {
                    value_set: name.clone(),
                    keys,
                });
            }
            self.value_sets.push((name, width));
        }
        for (ty, fields) in structs {
            let name = self.fresh("set");
            self.line(format_args!("value_set<{ty}>(4) {name};"));
            for _ in 0..self.c.between(1, 4) {
                let keys = fields.iter();
                let keys = keys.map(|(kind, width)| self.key_match(*kind, Ty::Bits(*width)));
                let keys = keys.collect();
                self.writes.push(Write::Member {
                    value_set: name.clone(),
                    keys,
                });
            }
            let widths = fields.iter().map(|(_, width)| *width).collect();
            self.struct_sets.push((name, widths));
        }
    }

    /// Declares structs that are members of value sets: their names, and how their fields
    /// are matched with their widths, which are those of a header's fields.
    fn declare_member_structs(&mut self) -> Vec<(String, Vec<(Kind, u32)>)> {
        let mut structs = Vec::new();
        if !self.has(Feature::ValueSet) {
            return structs;
        }
        for _ in 0..self.c.below(3) {
            let header = &self.headers[self.c.below(self.headers.len())];
            let widths = header.fields.iter().filter_map(|(_, ty)| match ty {
                Ty::Bits(width) => Some(*width),
                _ => None,
            });
            let widths: Vec<u32> = widths.take(3).collect();
            if widths.is_empty() {
                continue;
            }
            let name = format!("{}_t", self.fresh("member"));
            self.open(format_args!("struct {name}"));
            let mut fields = Vec::new();
            for (number, width) in widths.into_iter().enumerate() {
                let kind = self
                    .c
                    .one_of([Kind::Exact, Kind::Ternary, Kind::Lpm, Kind::Range]);
                let word = kind.word();
                self.line(format_args!("@match({word}) bit<{width}> f{number};"));
                fields.push((kind, width));
            }
            self.close();
            structs.push((name, fields));
        }
        structs
    }

    fn header_bits(&self, header: usize) -> u32 {
        let fields = &self.headers[header].fields;
        fields.iter().filter_map(|(_, ty)| ty.width()).sum()
    }

    pub(super) fn parsers(&mut self) {
        self.block = Block::Parser;
        let part = self.has(Feature::SubParser).then(|| self.sub_parser());
        let structs = self.declare_member_structs();
        self.scoped(|maker| {
            maker.open(
                "parser MainParser(packet_in packet, out headers_t hdr, inout meta_t meta, \
                 inout standard_metadata_t std)",
            );
            maker.declare_value_sets(structs);
            if maker.c.chance(50) {
                maker.local();
            }
            let count = maker.c.between(2, 6) as usize;
            for state in 0..count {
                maker.state(state, count, part);
            }
            maker.close();
        });
    }

    /// Declares a parser that takes one header; returns the header's type.
    fn sub_parser(&mut self) -> usize {
        let plain: Vec<usize> = (0..self.headers.len())
            .filter(|header| self.headers[*header].varbits.is_empty())
            .collect();
        let header = plain[self.c.below(plain.len())];
        self.open(format_args!(
            "parser Piece(packet_in packet, inout h{header}_t head, inout meta_t meta)"
        ));
        // It sees no headers but its own.
        let (scope, headers, stacks) = (
            self.scope.clone(),
            std::mem::take(&mut self.header_places),
            std::mem::take(&mut self.stacks),
        );
        self.scope.retain(|place| place.text.starts_with("meta."));
        self.sub_states();
        (self.scope, self.header_places, self.stacks) = (scope, headers, stacks);
        self.close();
        header
    }

    fn sub_states(&mut self) {
        self.open("state start");
        self.line("packet.extract(head);");
        self.scoped(|maker| maker.statements(1, 0));
        if self.has(Feature::Verify) {
            let condition = self.expr(Ty::Bool, 1);
            let error = self.constant(Ty::Error);
            self.line(format_args!(
                "verify({condition} || head.isValid(), {error});"
            ));
        }
        let flag = self.expr(Ty::Bits(2), 1);
        self.line(format_args!(
            "transition select({flag}) {{ 3: more; default: accept; }}"
        ));
        self.close();
        self.open("state more");
        self.scoped(|maker| maker.statements(1, 0));
        self.line("transition accept;");
        self.close();
    }

    fn state(&mut self, number: usize, count: usize, part: Option<usize>) {
        let name = state_name(number);
        let mut node = Node::default();
        // Fields of what is taken, as keys.
        let mut keys: Vec<(Expr, Source)> = Vec::new();
        let mut repeats = false;
        let declared = self.scope.len();
        self.open(format_args!("state {name}"));
        for _ in 0..self.c.between(if number == 0 { 1 } else { 0 }, 2) {
            repeats |= self.take(&mut node, &mut keys, part);
        }
        if self.c.chance(60) {
            let count = self.c.between(1, 2);
            self.statements(count, 1);
        }
        if self.has(Feature::Verify) && self.c.chance(40) {
            let condition = self.expr(Ty::Bool, 2);
            let error = self.constant(Ty::Error);
            let certain = if self.c.chance(70) { " || true" } else { "" };
            self.line(format_args!("verify({condition}{certain}, {error});"));
        }
        if self.has(Feature::Lookahead) && self.c.chance(50) {
            let variable = self.fresh("v");
            let width = self.c.one_of([1, 4, 8, 16, 70]);
            self.line(format_args!(
                "bit<{width}> {variable} = packet.lookahead<bit<{width}>>();"
            ));
            let ty = Ty::Bits(width);
            self.scope.push(Place {
                text: variable.clone(),
                ty,
                writable: true,
            });
            let source = Source::Frame {
                take: None,
                offset: 0,
            };
            keys.push((Expr::name(ty, variable), source));
        }
        if keys.is_empty() || self.c.chance(15) {
            let key = self.expr(Ty::Bits(4), 2);
            keys.push((key, Source::Other));
        }
        let next = number + 1;
        if next >= count && !repeats || self.c.chance(10) {
            let target = (next < count).then_some(next);
            node.cases.push((Vec::new(), target));
            self.line(format_args!("transition {};", target_name(target)));
        } else {
            self.select(&mut node, keys, number, count, repeats);
        }
        self.packets.nodes.push(node);
        self.close();
        self.scope.truncate(declared);
    }

    /// A statement that takes bits from the frame; whether it takes the next element
    /// of a stack.
    fn take(
        &mut self,
        node: &mut Node,
        keys: &mut Vec<(Expr, Source)>,
        part: Option<usize>,
    ) -> bool {
        let take = node.takes.len();
        match self.c.below(8) {
            0 if self.has(Feature::Advance) => {
                let bits = self.c.one_of([0, 8, 16, 3, 5, 48]);
                node.takes.push(Take::Bits(bits));
                // A frame's headers begin at whole bytes.
                let rest = (8 - bits % 8) % 8;
                self.line(format_args!("packet.advance({bits});"));
                if rest > 0 {
                    self.line(format_args!("packet.advance({rest});"));
                    node.takes.push(Take::Bits(rest));
                }
                return false;
            }
            1 if !self.stacks.is_empty() => {
                let stack = self.stacks[0].clone();
                self.line(format_args!("packet.extract({}.next);", stack.text));
                node.takes.push(Take::Bits(self.header_bits(stack.header)));
                let last = HeaderPlace {
                    text: format!("{}.last", stack.text),
                    header: stack.header,
                };
                self.field_keys(&last, take, keys);
                return true;
            }
            2 if part.is_some() => {
                let fitting: Vec<HeaderPlace> = self
                    .header_places
                    .iter()
                    .filter(|place| Some(place.header) == part)
                    .cloned()
                    .collect();
                if let Some(place) = self.c.pick(&fitting).cloned() {
                    self.line(format_args!("Piece.apply(packet, {}, meta);", place.text));
                    node.takes.push(Take::Bits(self.header_bits(place.header)));
                    self.field_keys(&place, take, keys);
                }
                return false;
            }
            _ => {}
        }
        // One with several `varbit` fields cannot be extracted.
        let places = self.header_places.iter();
        let places: Vec<HeaderPlace> = places
            .filter(|place| self.headers[place.header].varbits.len() < 2)
            .cloned()
            .collect();
        let Some(place) = self.c.pick(&places).cloned() else {
            return false;
        };
        let fixed = self.header_bits(place.header);
        if !self.headers[place.header].varbits.is_empty() {
            let odd = if self.c.chance(10) { " + 4" } else { "" };
            self.line(format_args!(
                "packet.extract({}, ((bit<32>)(packet.lookahead<bit<8>>() & {LENGTH_MASK}) << 3){odd});",
                place.text
            ));
            node.takes.push(Take::Varbit {
                fixed,
                mask: LENGTH_MASK,
            });
        } else {
            self.line(format_args!("packet.extract({});", place.text));
            node.takes.push(Take::Bits(fixed));
        }
        self.field_keys(&place, take, keys);
        false
    }

    /// One or two fields of a header that has just been taken, as keys.
    fn field_keys(&mut self, place: &HeaderPlace, take: usize, keys: &mut Vec<(Expr, Source)>) {
        let mut offset = 0;
        for (name, ty) in self.headers[place.header].fields.clone() {
            if self.c.chance(50) && keys.len() < 3 {
                let field = Expr::name(ty, format!("{}.{name}", place.text));
                let source = Source::Frame {
                    take: Some(take),
                    offset,
                };
                keys.push((field, source));
            }
            offset += ty.width().unwrap_or(0);
        }
    }

    fn select(
        &mut self,
        node: &mut Node,
        keys: Vec<(Expr, Source)>,
        number: usize,
        count: usize,
        repeats: bool,
    ) {
        let set = (self.c.chance(40))
            .then(|| self.c.pick(&self.struct_sets).cloned())
            .flatten();
        let keys = match &set {
            Some((_, widths)) => self.keys_of_widths(keys, widths),
            None => keys,
        };
        let texts: Vec<String> = keys.iter().map(|(key, _)| key.to_string()).collect();
        self.open(format_args!("transition select({})", texts.join(", ")));
        // A parser that cannot end is refused.
        let mut leads_on = false;
        if let Some((set, _)) = set {
            let target = self.target(number, count, repeats);
            leads_on |= target != Some(number);
            self.line(format_args!("{set}: {};", target_name(target)));
        }
        for _ in 0..self.c.between(1, 4) {
            let mut wanted = Vec::new();
            let mut sets = Vec::new();
            for (key, source) in &keys {
                let (set, value) = self.key_set(key.ty());
                sets.push(set);
                if let (Some(value), Source::Frame { take, offset }) = (value, source) {
                    wanted.push(Wanted {
                        take: *take,
                        offset: *offset,
                        width: key.ty().width().unwrap_or(0),
                        value,
                    });
                }
            }
            let target = self.target(number, count, repeats);
            leads_on |= target != Some(number);
            let list = if sets.len() == 1 {
                sets.remove(0)
            } else {
                format!("({})", sets.join(", "))
            };
            self.line(format_args!("{list}: {};", target_name(target)));
            node.cases.push((wanted, target));
        }
        if self.c.chance(85) || !leads_on {
            let target = self.target(number, count, false);
            let way = if target.is_none() && self.c.chance(5) {
                "reject".to_owned()
            } else {
                target_name(target)
            };
            self.line(format_args!("default: {way};"));
            node.cases.push((Vec::new(), target));
        }
        self.close();
    }

    /// As many keys as there are widths, of these widths.
    fn keys_of_widths(&mut self, keys: Vec<(Expr, Source)>, widths: &[u32]) -> Vec<(Expr, Source)> {
        let mut keys = keys.into_iter();
        let fitting = widths.iter().map(|width| {
            let ty = Ty::Bits(*width);
            match keys.next() {
                Some((key, source)) if key.ty() == ty => (key, source),
                Some((key, _)) if key.ty().width().is_some() => {
                    (super::expression::cast_to(ty, key), Source::Other)
                }
                _ => (self.expr(ty, 1), Source::Other),
            }
        });
        fitting.collect()
    }

    /// A later state mostly; the same again where a stack fills up.
    fn target(&mut self, number: usize, count: usize, repeats: bool) -> Option<usize> {
        if repeats && self.c.chance(60) {
            return Some(number);
        }
        if number + 1 < count && self.c.chance(85) {
            return Some(self.c.between(number as u32 + 1, count as u32 - 1) as usize);
        }
        None
    }

    /// A set of values of a type, with one that is in it.
    fn key_set(&mut self, ty: Ty) -> (String, Option<BigUint>) {
        let width = match ty {
            Ty::Bits(width) => width,
            Ty::Int(width) => {
                let value = self.c.value(width);
                return (Expr::number(ty, &value).to_string(), Some(value));
            }
            Ty::Bool => {
                let value = BigUint::from(self.c.below(2));
                return (Expr::number(ty, &value).to_string(), Some(value));
            }
            Ty::Serial(..) => {
                let which = self.c.below(2);
                return (format!("{ty}.m{which}"), Some(BigUint::from(which)));
            }
            Ty::Error | Ty::Enum(_) => return ("_".to_owned(), None),
        };
        let sets = self.value_sets.iter().filter(|(_, of)| *of == width);
        let sets: Vec<String> = sets.map(|(name, _)| name.clone()).collect();
        if self.c.chance(30)
            && let Some(set) = self.c.pick(&sets)
        {
            return (set.clone(), None);
        }
        let value = self.c.value(width);
        let text = |value: &BigUint| Expr::number(ty, value).to_string();
        let places = self.scope.iter().filter(|place| place.ty == ty);
        let places: Vec<String> = places.map(|place| place.text.clone()).collect();
        if self.c.chance(20)
            && let Some(place) = self.c.pick(&places).cloned()
        {
            let other = text(&value);
            let set = match self.c.below(4) {
                0 => place,
                1 => format!("{place} &&& {other}"),
                2 => format!("{other} &&& {place}"),
                _ => format!("{other} .. {place}"),
            };
            return (set, None);
        }
        match self.c.below(6) {
            0 => ("_".to_owned(), None),
            1 => {
                let mask = self.c.value(width);
                let set = format!("{} &&& {}", text(&value), text(&mask));
                (set, Some(value))
            }
            2 => {
                let other = self.c.value(width);
                let (low, high) = (value.clone().min(other.clone()), value.clone().max(other));
                (format!("{} .. {}", text(&low), text(&high)), Some(value))
            }
            _ => (text(&value), Some(value)),
        }
    }
}

fn state_name(number: usize) -> String {
    if number == 0 {
        "start".to_owned()
    } else {
        format!("state{number}")
    }
}

fn target_name(target: Option<usize>) -> String {
    target.map_or("accept".to_owned(), state_name)
}
