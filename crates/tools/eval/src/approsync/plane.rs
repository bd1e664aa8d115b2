//! Sketches as a data plane holds them, at once and without delay, and the updates that packets make.

use super::packets::Packet;
use crate::error::EvalError;
use stateplane_sketch::{Family, Hash, Key, Pairs, Reading, Shape, Sketch, SketchError};

/// Seed of the programs: SKETCH_SEED of `p4/lib/sketch.p4`.
pub(super) const SEED: u64 = 0x5374_6174_6570_6c61;

/// Values of a cell of FlowRadar, and functions of its filter (`apps/flow-radar`).
const CELL: usize = 3;
const FILTER_FUNCTIONS: u32 = 3;

/// First functions of `apps/count-min`: of its filter of pairs, and of the sketches of partners.
const PAIRS_FUNCTION: u32 = 3;
const PARTNER_FUNCTIONS: [u32; 2] = [6, 9];

/// A location that has a new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Update {
    pub(super) group: usize,
    pub(super) location: usize,
    pub(super) value: u64,
}

/// A sketch that is refused.
pub(super) fn wrong(error: SketchError) -> EvalError {
    EvalError::Refused {
        what: "a sketch".to_owned(),
        reason: error.to_string(),
    }
}

/// The sketches of a program. A group is a part of one of them, in their order.
pub(super) struct Plane {
    sketches: Vec<Sketch>,
    /// The filter of pairs that the sketches of partners have.
    pairs: Option<Pairs>,
    places: Vec<(usize, usize)>,
    before: Vec<u64>,
}

/// The key that a program with a sketch of this family counts.
pub(super) fn key_of(family: Family, packet: &Packet) -> Key {
    match family {
        Family::CountMin | Family::FlowRadar => packet.flow(),
        Family::HashPipe | Family::Elastic | Family::UnivMon | Family::SketchLearn => {
            packet.source()
        }
    }
}

impl Plane {
    /// One sketch.
    ///
    /// # Errors
    /// `EV003` if a size is out of its range.
    pub(super) fn of(shape: Shape) -> Result<Self, EvalError> {
        Ok(Self {
            sketches: vec![Sketch::empty(shape).map_err(wrong)?],
            pairs: None,
            places: Vec::new(),
            before: Vec::new(),
        })
    }

    /// The three sketches of `apps/count-min`: flows, destinations of sources, sources of destinations.
    ///
    /// # Errors
    /// `EV003` if a size is out of its range.
    pub(super) fn count_min(
        column_bits: u32,
        partner_bits: u32,
        filter_bits: u32,
    ) -> Result<Self, EvalError> {
        let mut plane = Self::of(Shape::count_min(SEED, 0, 3, column_bits))?;
        for function in PARTNER_FUNCTIONS {
            let shape = Shape::count_min(SEED, function, 3, partner_bits);
            plane.sketches.push(Sketch::empty(shape).map_err(wrong)?);
        }
        plane.pairs = Some(Pairs::new(SEED, PAIRS_FUNCTION, filter_bits));
        Ok(plane)
    }

    /// Counts a packet. `updates` are what it changes, in the place of what was there.
    pub(super) fn packet(&mut self, packet: &Packet, updates: &mut Vec<Update>) {
        updates.clear();
        let key = key_of(self.sketches[0].shape().family, packet);
        self.count(0, key, updates);
        let pairs = self.pairs.as_mut();
        if pairs.is_some_and(|pairs| pairs.insert(packet.pair())) {
            self.count(1, packet.source(), updates);
            self.count(2, packet.destination(), updates);
        }
    }

    fn count(&mut self, at: usize, key: Key, updates: &mut Vec<Update>) {
        // Sketches behind the first have one part each, and so has the first in front of others.
        let sketch = &mut self.sketches[at];
        places(sketch, key, &mut self.places);
        let parts = sketch.parts();
        let held = self.places.iter();
        self.before.clear();
        self.before
            .extend(held.map(|(part, place)| parts[*part].values[*place]));
        sketch.update(key);
        let parts = sketch.parts();
        for ((part, location), before) in self.places.iter().zip(&self.before) {
            let value = parts[*part].values[*location];
            if value != *before {
                updates.push(Update {
                    group: at + part,
                    location: *location,
                    value,
                });
            }
        }
    }

    /// Groups of values.
    pub(super) fn groups(&self) -> usize {
        self.sketches.iter().map(|it| it.parts().len()).sum()
    }

    /// Values of a group.
    pub(super) fn values(&self, group: usize) -> &[u64] {
        let mut parts = self.sketches.iter().flat_map(|it| it.parts());
        parts.nth(group).map_or(&[], |part| &part.values)
    }

    /// Copies of the values of all groups.
    pub(super) fn all(&self) -> Vec<Vec<u64>> {
        let groups = 0..self.groups();
        groups.map(|group| self.values(group).to_vec()).collect()
    }
}

/// The sketch with these values, as if they were exact.
///
/// # Errors
/// `EV003` if they are of other sizes.
pub(super) fn sketch(shape: Shape, values: Vec<Vec<u64>>) -> Result<Sketch, EvalError> {
    let parts = values.into_iter().map(|part| Reading::window(part, 0));
    Sketch::new(shape, parts.collect()).map_err(wrong)
}

/// Parts and locations that a packet with this key may change, each once; of HashPipe, whose buckets
/// move from one place to another, none.
fn places(sketch: &Sketch, key: Key, places: &mut Vec<(usize, usize)>) {
    places.clear();
    let shape = sketch.shape();
    let (rows, columns) = (shape.rows, shape.columns());
    let hash = |number: u32| Hash::new(shape.seed, shape.function + number);
    let column = |number: u32, bits: u32| hash(number).column(key.0, bits);
    match shape.family {
        Family::HashPipe => {}
        Family::CountMin => {
            let of_rows =
                (0..rows).map(|row| row as usize * columns + column(row, shape.column_bits));
            places.extend(of_rows.map(|place| (0, place)));
            places.push((0, rows as usize * columns));
        }
        Family::SketchLearn => {
            let own = column(0, shape.column_bits);
            let bits = (0..rows as usize).filter(|bit| key.0[0] >> bit & 1 == 1);
            let levels = std::iter::once(0).chain(bits.map(|bit| bit + 1));
            places.extend(levels.map(|level| (0, level * columns + own)));
        }
        Family::Elastic => {
            let heavy = column(0, shape.column_bits);
            let held = (sketch.parts()[0].values[heavy] >> 32) as u32;
            let evicted = hash(1).column([held, 0, 0, 0], shape.part_bits);
            places.extend([(0, heavy), (1, column(1, shape.part_bits)), (1, evicted)]);
        }
        Family::UnivMon => {
            let deepest = hash(0).of(key.0).leading_ones().min(rows - 1);
            let of_levels = (0..=deepest).map(|level| {
                let own = column(1 + level, shape.column_bits + 1);
                level as usize * columns * 2 + own
            });
            places.extend(of_levels.map(|place| (0, place)));
            let slot = column(1 + rows, shape.part_bits);
            places.push((1, ((deepest as usize) << shape.part_bits) + slot));
        }
        Family::FlowRadar => {
            let filter = rows as usize * columns * CELL;
            let bits = (rows..rows + FILTER_FUNCTIONS).map(|function| {
                let bit = column(function, shape.part_bits + 6);
                filter + (bit >> 6)
            });
            places.extend(bits.map(|place| (0, place)));
            for row in 0..rows {
                let cell = row as usize * columns + column(row, shape.column_bits);
                places.extend((0..CELL).map(|word| (0, cell * CELL + word)));
            }
        }
    }
    places.sort_unstable();
    places.dedup();
}

#[cfg(test)]
mod tests {
    use super::super::packets::Source;
    use super::*;

    /// All that packets change is among the updates: applied to zeros they give the sketch.
    #[test]
    fn updates_are_all_that_changes() {
        let shapes = [
            Shape::count_min(SEED, 0, 3, 6),
            Shape::of(Family::FlowRadar, SEED, 3, 6, 4),
            Shape::of(Family::UnivMon, SEED, 32, 4, 2),
            Shape::of(Family::SketchLearn, SEED, 32, 4, 0),
            Shape::of(Family::Elastic, SEED, 1, 4, 6),
        ];
        let planes = shapes.map(Plane::of).into_iter();
        for plane in planes.chain([Plane::count_min(6, 5, 12)]) {
            let mut plane = plane.unwrap();
            let mut source = Source::drawn(300, 5, true);
            let mut updates = Vec::new();
            let mut seen: Vec<Vec<u64>> = plane.all();
            for _ in 0..4_000 {
                plane.packet(&source.packet(), &mut updates);
                for update in &updates {
                    seen[update.group][update.location] = update.value;
                }
            }
            assert!(seen.iter().flatten().any(|value| *value != 0));
            assert_eq!(seen, plane.all());
        }
    }
}
