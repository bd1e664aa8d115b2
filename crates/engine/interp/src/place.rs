//! Places: where a variable's part lies, and how it is read and written.

use crate::machine::Run;
use crate::observe::Observer;
use stateplane_ir::{Place, Projection, Type};
use stateplane_runtime::bits;
use stateplane_runtime::layout::scalar_bits;
use stateplane_runtime::parser::core_error;

/// Position of a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    /// First word.
    pub(crate) at: usize,
    /// Type of what lies there; of a slice, of what it is cut from.
    pub(crate) ty: Type,
    /// Highest and lowest bit of a slice.
    pub(crate) slice: Option<(u32, u32)>,
    /// The union that a header is a member of: its first word and type.
    pub(crate) union: Option<(usize, Type)>,
}

impl Spot {
    fn whole(at: usize, ty: Type) -> Spot {
        Spot {
            at,
            ty,
            slice: None,
            union: None,
        }
    }
}

/// True if values of a type are computed in one machine word.
pub(crate) fn is_narrow(ty: Type) -> bool {
    match ty {
        Type::Bool | Type::Error | Type::Enum(_) => true,
        Type::Bits(width) | Type::Int(width) => width <= bits::WORD,
        _ => false,
    }
}

impl<O: Observer> Run<'_, O> {
    /// Finds a place. `None` if it lies past the end of a stack; for `next` and
    /// `last` in a parser that is an error.
    pub(crate) fn spot(&mut self, place: &Place) -> Option<Spot> {
        self.spot_of(place.var, &place.path)
    }

    fn spot_of(&mut self, var: stateplane_ir::VarId, path: &[Projection]) -> Option<Spot> {
        let code = self.code;
        let mut spot = Spot::whole(code.bases[var.index()], code.program.vars[var.index()].ty);
        for step in path {
            let (at, ty) = (spot.at, spot.ty);
            match step {
                Projection::Field(field) => {
                    let (Type::Struct(id) | Type::Header(id) | Type::Union(id)) = ty else {
                        return None;
                    };
                    spot = Spot::whole(
                        at + code.layout.field_offset(ty, *field),
                        code.program.structs[id.index()].fields[*field as usize].ty,
                    );
                    if matches!(ty, Type::Union(_)) {
                        spot.union = Some((at, ty));
                    }
                }
                Projection::Slice { hi, lo } => spot.slice = Some((*hi, *lo)),
                Projection::Index(_) | Projection::Next | Projection::Last => {
                    let Type::Stack(id) = ty else {
                        return None;
                    };
                    let (element, stride, count) = code.layout.stack(id);
                    let next = self.m.words[at];
                    let index = match step {
                        Projection::Index(index) => Some(u128::from(self.index(index))),
                        Projection::Next => Some(next),
                        _ => next.checked_sub(1),
                    };
                    let Some(index) = index.filter(|index| *index < u128::from(count)) else {
                        if self.m.in_parser && !matches!(step, Projection::Index(_)) {
                            self.m.fault = Some(core_error::STACK_OUT_OF_BOUNDS);
                        }
                        return None;
                    };
                    spot = Spot::whole(at + 1 + index as usize * stride, element);
                }
            }
        }
        Some(spot)
    }

    /// The stack whose `next` is the last such step of a place.
    pub(crate) fn advanced_stack(&mut self, place: &Place) -> Option<Spot> {
        let last = place
            .path
            .iter()
            .rposition(|step| matches!(step, Projection::Next))?;
        self.spot_of(place.var, &place.path[..last])
    }

    /// Reads a scalar of at most 128 bits.
    pub(crate) fn load_narrow(&self, spot: Spot) -> u128 {
        match spot.slice {
            None => self.m.words[spot.at],
            Some((hi, lo)) => {
                let end = spot.at + self.size(spot.ty);
                bits::get_bits(&self.m.words[spot.at..end], lo, hi - lo + 1)
            }
        }
    }

    /// Writes a scalar of at most 128 bits.
    pub(crate) fn store_narrow(&mut self, spot: Spot, value: u128) {
        match spot.slice {
            None => self.m.words[spot.at] = value,
            Some((hi, lo)) => {
                let end = spot.at + self.size(spot.ty);
                bits::set_bits(&mut self.m.words[spot.at..end], lo, hi - lo + 1, value);
            }
        }
    }

    /// Pushes what lies at a place.
    pub(crate) fn push_spot(&mut self, spot: Spot) {
        let end = spot.at + self.size(spot.ty);
        match spot.slice {
            None => self.m.stack.extend_from_slice(&self.m.words[spot.at..end]),
            Some((hi, lo)) => {
                let width = hi - lo + 1;
                for part in 0..bits::word_count(width) as u32 {
                    let low = part * bits::WORD;
                    let size = (width - low).min(bits::WORD);
                    let word = bits::get_bits(&self.m.words[spot.at..end], lo + low, size);
                    self.m.stack.push(word);
                }
            }
        }
    }

    /// Pops the value that begins at `base` of the stack, into a place if there is
    /// one.
    pub(crate) fn pop_into(&mut self, base: usize, spot: Option<Spot>) {
        if let Some(spot) = spot {
            let m = &mut *self.m;
            match spot.slice {
                None => {
                    let value = &m.stack[base..];
                    m.words[spot.at..spot.at + value.len()].copy_from_slice(value);
                }
                Some((hi, lo)) => {
                    let end = spot.at + self.code.layout.words(spot.ty);
                    let width = hi - lo + 1;
                    for (part, word) in m.stack[base..].iter().enumerate() {
                        let low = part as u32 * bits::WORD;
                        let size = (width - low).min(bits::WORD);
                        bits::set_bits(&mut m.words[spot.at..end], lo + low, size, *word);
                    }
                }
            }
            self.settle_union(spot);
        }
        self.m.stack.truncate(base);
    }

    /// After a member of a union became valid, no other is.
    pub(crate) fn settle_union(&mut self, spot: Spot) {
        // Of an empty struct there may be no word.
        let Some((start, union @ Type::Union(id))) = spot.union else {
            return;
        };
        if self.m.words[spot.at] != 1 {
            return;
        }
        let members = self.program().structs[id.index()].fields.len();
        for member in 0..members as u32 {
            let at = start + self.layout().field_offset(union, member);
            if at != spot.at {
                self.m.words[at] = 0;
            }
        }
    }

    /// `isValid()`.
    pub(crate) fn is_valid(&self, spot: Spot) -> bool {
        match spot.ty {
            Type::Union(id) => {
                let members = self.program().structs[id.index()].fields.len();
                (0..members as u32).any(|member| {
                    self.m.words[spot.at + self.layout().field_offset(spot.ty, member)] == 1
                })
            }
            _ => self.m.words[spot.at] == 1,
        }
    }

    /// Sets a place of any type to its default.
    pub(crate) fn clear(&mut self, spot: Spot) {
        match spot.slice {
            None => {
                let end = spot.at + self.size(spot.ty);
                self.m.words[spot.at..end].fill(0);
            }
            Some(_) => {
                let base = self.m.stack.len();
                let width = spot.slice.map_or(0, |(hi, lo)| hi - lo + 1);
                self.m.stack.resize(base + bits::word_count(width), 0);
                self.pop_into(base, Some(spot));
            }
        }
    }

    /// Writes a scalar of any width, given as its low word; a wider place gets zeros
    /// above.
    pub(crate) fn store_number(&mut self, place: &Place, value: u128) {
        let Some(spot) = self.spot(place) else {
            return;
        };
        let width = match spot.slice {
            Some((hi, lo)) => hi - lo + 1,
            None => scalar_bits(spot.ty),
        };
        if width <= bits::WORD {
            self.store_narrow(spot, value & bits::mask(width));
        } else {
            let base = self.m.stack.len();
            self.m.stack.resize(base + bits::word_count(width), 0);
            self.m.stack[base] = value;
            self.pop_into(base, Some(spot));
        }
    }
}
