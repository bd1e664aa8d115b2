//! Telling an observer. Nothing here runs, or allocates, unless it is active.

use crate::machine::Run;
use crate::observe::{Datum, Event, Observer};
use crate::place::Spot;
use stateplane_ir::{Direction, Param, Place, Projection, Type};
use stateplane_runtime::bits::{self, word_count};
use stateplane_runtime::layout::scalar_bits;
use std::fmt::Write as _;

/// A place about to be written: its name, and where it lies.
pub(crate) type Watched = Option<(String, Spot)>;

impl<O: Observer> Run<'_, O> {
    /// Tells what `event` gives.
    pub(crate) fn tell<'e>(&mut self, event: impl FnOnce(&mut Self) -> Event<'e>) {
        if O::ACTIVE {
            let event = event(self);
            self.o.event(&self.code.program, event);
        }
    }

    /// Remembers a place that is about to be written, for [`Run::after`].
    pub(crate) fn watch(&mut self, place: &Place) -> Watched {
        if !O::ACTIVE {
            return None;
        }
        // An observer must not change what a program does: a faulty index is found
        // again, and told, by who writes.
        let fault = self.m.fault.take();
        let name = self.place_name(place);
        let spot = self.spot(place);
        self.m.fault = fault;
        spot.map(|spot| (name, spot))
    }

    /// Tells of a place after it was written, if it was.
    pub(crate) fn after<'e>(
        &mut self,
        watched: Watched,
        event: impl FnOnce(String, Datum) -> Event<'e>,
    ) {
        if let Some((name, spot)) = watched {
            let value = self.datum_at(spot);
            self.tell(|_| event(name, value));
        }
    }

    /// A place as text, with values for indices.
    pub(crate) fn place_name(&mut self, place: &Place) -> String {
        let program = self.program();
        let var = &program.vars[place.var.index()];
        let mut name = var.name.clone();
        let mut ty = var.ty;
        for (position, step) in place.path.iter().enumerate() {
            // Writing to a string does not fail.
            let _ = match step {
                Projection::Field(field) => match ty {
                    Type::Struct(id) | Type::Header(id) | Type::Union(id) => {
                        let fields = &program.structs[id.index()].fields;
                        write!(name, ".{}", fields[*field as usize].name)
                    }
                    _ => Ok(()),
                },
                Projection::Index(index) => {
                    let index = self.index(index);
                    write!(name, "[{index}]")
                }
                Projection::Next | Projection::Last => {
                    let stack = Place {
                        var: place.var,
                        path: place.path[..position].to_vec(),
                    };
                    let next = self.spot(&stack).map_or(0, |spot| self.m.words[spot.at]);
                    let back = u128::from(matches!(step, Projection::Last));
                    match next.checked_sub(back) {
                        Some(index) => write!(name, "[{index}]"),
                        None => write!(name, ".last"),
                    }
                }
                Projection::Slice { hi, lo } => write!(name, "[{hi}:{lo}]"),
            };
            ty = program.step_type(ty, step).unwrap_or(ty);
        }
        name
    }

    /// Value at a place.
    pub(crate) fn datum_at(&mut self, spot: Spot) -> Datum {
        let base = self.m.stack.len();
        self.push_spot(spot);
        let ty = match spot.slice {
            Some((hi, lo)) => Type::Bits(hi - lo + 1),
            None => spot.ty,
        };
        let datum = self.datum(ty, &self.m.stack[base..]);
        self.m.stack.truncate(base);
        datum
    }

    /// The value of type `ty` that `words` hold.
    pub(crate) fn datum(&self, ty: Type, words: &[u128]) -> Datum {
        match ty {
            Type::Header(_) if words[0] != 1 => Datum::Invalid,
            Type::Struct(id) | Type::Header(id) | Type::Union(id) => {
                let fields = &self.program().structs[id.index()].fields;
                let members: Vec<(String, Datum)> = fields
                    .iter()
                    .enumerate()
                    .map(|(position, field)| {
                        let at = self.layout().field_offset(ty, position as u32);
                        let member = &words[at..at + self.size(field.ty)];
                        (field.name.clone(), self.datum(field.ty, member))
                    })
                    .collect();
                match ty {
                    Type::Union(_) => Self::valid_only(members),
                    _ => Datum::Members(members),
                }
            }
            Type::Stack(id) => {
                let (element, stride, count) = self.layout().stack(id);
                let elements = (0..count as usize).map(|index| {
                    let at = 1 + index * stride;
                    let element = self.datum(element, &words[at..at + stride]);
                    (format!("[{index}]"), element)
                });
                Self::valid_only(elements.collect())
            }
            Type::Varbit(width) => {
                let length = words[0].min(u128::from(width)) as u32;
                Datum::Varbit(length, bits::to_biguint(&words[1..]))
            }
            scalar => Datum::Scalar(
                scalar,
                bits::to_biguint(&words[..word_count(scalar_bits(scalar))]),
            ),
        }
    }

    fn valid_only(mut members: Vec<(String, Datum)>) -> Datum {
        members.retain(|(_, member)| *member != Datum::Invalid);
        if members.is_empty() {
            Datum::Invalid
        } else {
            Datum::Members(members)
        }
    }

    /// Values of scalar parameters, `out` ones excepted, with their names.
    pub(crate) fn parameters<'p>(
        &mut self,
        params: impl Iterator<Item = &'p Param>,
    ) -> Vec<(String, Datum)> {
        let mut values = Vec::new();
        for param in params.filter(|param| param.direction != Direction::Out) {
            let var = &self.program().vars[param.var.index()];
            if matches!(
                var.ty,
                Type::Struct(_) | Type::Header(_) | Type::Union(_) | Type::Stack(_)
            ) {
                continue;
            }
            let at = self.code.bases[param.var.index()];
            let words = &self.m.words[at..at + self.size(var.ty)];
            let name = var.name.rsplit('.').next().unwrap_or_default();
            values.push((name.to_owned(), self.datum(var.ty, words)));
        }
        values
    }
}
