//! Operations on the packet's bytes: extract, lookahead, advance, emit.

use crate::machine::{Flow, Run};
use crate::observe::{Event, Observer};
use stateplane_ir::{Expr, Place, Type};
use stateplane_runtime::bits::{self, BitWriter, word_count};
use stateplane_runtime::layout::{Leaf, LeafKind};
use stateplane_runtime::parser::core_error;
use std::fmt;

impl<O: Observer> Run<'_, O> {
    fn bits_left(&self) -> usize {
        (self.m.frame.len() * 8).saturating_sub(self.m.cursor)
    }

    /// Reads the bits of leaves, whose first word is `start`, from bit `from` of the
    /// frame, which is long enough.
    fn read_leaves(&mut self, leaves: &[Leaf], start: usize, from: usize, varbit: u32) {
        let mut cursor = from;
        let m = &mut *self.m;
        for leaf in leaves {
            let mut at = start + leaf.offset;
            let mut width = leaf.width;
            match leaf.kind {
                LeafKind::Scalar => {}
                LeafKind::Varbit => {
                    m.words[at] = u128::from(varbit);
                    at += 1;
                    width = varbit;
                }
                LeafKind::Validity | LeafKind::NextIndex => continue,
            }
            if leaf.kind == LeafKind::Scalar && width <= bits::WORD {
                m.words[at] = bits::read_bits(&m.frame, cursor, width).unwrap_or(0);
            } else {
                let value = &mut m.words[at..at + word_count(leaf.width)];
                bits::read_words(&m.frame, cursor, width, value);
            }
            cursor += width as usize;
        }
    }

    /// `packet.extract`.
    pub(crate) fn extract(&mut self, header: &Place, varbit_size: Option<&Expr>) -> Flow {
        let size = varbit_size.map_or(0, |size| self.index(size));
        let spot = self.spot(header);
        if let Some(flow) = self.faulted() {
            return flow;
        }
        let Some(spot) = spot else {
            return Flow::Reject(core_error::STACK_OUT_OF_BOUNDS);
        };
        let Type::Header(id) = spot.ty else {
            return Flow::Next;
        };
        let layout = self.layout();
        let leaves = layout.header_leaves(id);
        let greatest = leaves
            .iter()
            .find(|leaf| leaf.kind == LeafKind::Varbit)
            .map_or(0, |leaf| leaf.width);
        if size > u64::from(greatest) {
            return Flow::Reject(core_error::HEADER_TOO_SHORT);
        }
        if !size.is_multiple_of(8) {
            return Flow::Reject(core_error::PARSER_INVALID_ARGUMENT);
        }
        let varbit = size as u32;
        let total = layout.header_bits(id) as usize + varbit as usize;
        if total > self.bits_left() {
            return Flow::Reject(core_error::PACKET_TOO_SHORT);
        }
        let watched = self.watch(header);
        let from = self.m.cursor;
        self.read_leaves(leaves, spot.at + 1, from, varbit);
        self.m.cursor += total;
        self.m.words[spot.at] = 1;
        self.after(watched, |header, value| Event::Extract {
            header,
            from,
            bits: total,
            value,
        });
        self.settle_union(spot);
        if let Some(stack) = self.advanced_stack(header) {
            self.m.words[stack.at] += 1;
        }
        Flow::Next
    }

    /// `packet.lookahead`.
    pub(crate) fn lookahead(&mut self, result: &Place) -> Flow {
        let spot = self.spot(result);
        if let Some(flow) = self.faulted() {
            return flow;
        }
        let Some(spot) = spot else {
            return Flow::Next;
        };
        let watched = self.watch(result);
        let cursor = self.m.cursor;
        if let (Some((hi, lo)), _) = (spot.slice, spot.ty) {
            let width = hi - lo + 1;
            if width as usize > self.bits_left() {
                return Flow::Reject(core_error::PACKET_TOO_SHORT);
            }
            let base = self.m.stack.len();
            self.m.stack.resize(base + word_count(width), 0);
            let m = &mut *self.m;
            bits::read_words(&m.frame, cursor, width, &mut m.stack[base..]);
            self.pop_into(base, Some(spot));
            self.after(watched, Event::Lookahead);
            return Flow::Next;
        }
        let whole = self.layout().leaves(spot.ty);
        let total: usize = whole
            .iter()
            .filter(|leaf| leaf.kind == LeafKind::Scalar)
            .map(|leaf| leaf.width as usize)
            .sum();
        if total > self.bits_left() {
            return Flow::Reject(core_error::PACKET_TOO_SHORT);
        }
        self.read_leaves(&whole, spot.at, cursor, 0);
        for leaf in &whole {
            if leaf.kind == LeafKind::Validity {
                self.m.words[spot.at + leaf.offset] = 1;
            }
        }
        self.settle_union(spot);
        self.after(watched, Event::Lookahead);
        Flow::Next
    }

    /// `packet.advance`.
    pub(crate) fn advance(&mut self, bits: &Expr) -> Flow {
        let bits = self.index(bits);
        if let Some(flow) = self.faulted() {
            return flow;
        }
        if bits > self.bits_left() as u64 {
            return Flow::Reject(core_error::PACKET_TOO_SHORT);
        }
        self.m.cursor += bits as usize;
        self.tell(|_| Event::Advance(bits));
        Flow::Next
    }

    /// `packet.emit`.
    pub(crate) fn emit(&mut self, value: &Place) {
        let name = if O::ACTIVE {
            self.place_name(value)
        } else {
            String::new()
        };
        if let Some(spot) = self.spot(value) {
            self.emit_words(spot.ty, spot.at, &name);
        }
    }

    /// Emits what lies at a word; `name` is for an observer.
    fn emit_words(&mut self, ty: Type, at: usize, name: &str) {
        let part = |suffix: fmt::Arguments<'_>| {
            if O::ACTIVE {
                format!("{name}{suffix}")
            } else {
                String::new()
            }
        };
        match ty {
            Type::Header(_) if self.m.words[at] != 1 => {}
            Type::Header(id) => {
                let leaves = self.layout().header_leaves(id);
                self.emit_leaves(leaves, at + 1);
                self.tell(|run| {
                    let words = &run.m.words[at..at + run.size(ty)];
                    Event::Emit(name.to_owned(), run.datum(ty, words))
                });
            }
            Type::Struct(id) | Type::Union(id) => {
                let fields = &self.code.program.structs[id.index()].fields;
                for (index, field) in fields.iter().enumerate() {
                    let offset = self.layout().field_offset(ty, index as u32);
                    self.emit_words(
                        field.ty,
                        at + offset,
                        &part(format_args!(".{}", field.name)),
                    );
                }
            }
            Type::Stack(id) => {
                let (element, stride, count) = self.layout().stack(id);
                for index in 0..count as usize {
                    let name = part(format_args!("[{index}]"));
                    self.emit_words(element, at + 1 + index * stride, &name);
                }
            }
            _ => {}
        }
    }

    fn emit_leaves(&mut self, leaves: &[Leaf], start: usize) {
        let m = &mut *self.m;
        let mut writer = BitWriter::resume(&mut m.emitted, m.emitted_free);
        for leaf in leaves {
            let at = start + leaf.offset;
            match leaf.kind {
                LeafKind::Scalar if leaf.width <= bits::WORD => {
                    writer.put(m.words[at], leaf.width);
                }
                LeafKind::Scalar => {
                    writer.put_words(&m.words[at..at + word_count(leaf.width)], leaf.width);
                }
                LeafKind::Varbit => {
                    let length = m.words[at].min(u128::from(leaf.width)) as u32;
                    let value = &m.words[at + 1..at + 1 + word_count(leaf.width)];
                    writer.put_words(value, length);
                }
                LeafKind::Validity | LeafKind::NextIndex => {}
            }
        }
        m.emitted_free = writer.free();
    }

    /// Appends the bits of scalars and varbits to `data`, and pads to whole bytes.
    pub(crate) fn collect<'e>(
        &mut self,
        values: impl IntoIterator<Item = &'e Expr>,
        data: &mut Vec<u8>,
    ) {
        let mut writer = BitWriter::new(data);
        for value in values {
            let base = self.m.stack.len();
            self.push(value);
            let words = &self.m.stack[base..];
            match value.ty {
                Type::Varbit(width) => {
                    let length = words[0].min(u128::from(width)) as u32;
                    writer.put_words(&words[1..], length);
                }
                scalar => {
                    writer.put_words(words, stateplane_runtime::layout::scalar_bits(scalar));
                }
            }
            self.m.stack.truncate(base);
        }
    }
}
