//! The sketches of ApproSync's §VII-C, in its sizes or in small ones.

use super::super::packets::{Packet, Source};
use super::super::plane::{Plane, SEED};
use super::super::viewed::{Viewed, shipped};
use super::super::ways::push_bytes;
use crate::error::EvalError;
use stateplane_sketch::{Family, Shape};

/// Values of a message.
const BATCH: f64 = 16.0;

/// Frozen values of a message: as many as it takes, and few in a quick run, as each makes long code.
const FETCH: [u64; 2] = [168, 32];

/// Packets of which the updates are counted.
const SAMPLE: usize = 5_000;

/// A sketch.
pub(super) struct Case {
    pub(super) name: &'static str,
    path: &'static str,
    macros: Vec<(&'static str, u64)>,
    /// Registers in view; those that the program annotates if none is named.
    registers: &'static [&'static str],
    pub(super) shape: Shape,
    /// Flows of the traffic.
    flows: u32,
}

/// Bytes on the wire for a packet, if all of its updates are sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    /// In messages of sync.
    pub(super) sync: f64,
    /// In frames of their own.
    pub(super) pushed: f64,
}

impl Case {
    /// All five.
    pub(super) fn all(quick: bool) -> Vec<Self> {
        let bits = |paper: u32, small: u32| if quick { small } else { paper };
        let of = |family, rows, columns, part| Shape::of(family, SEED, rows, columns, part);
        let (cells, filter) = (bits(13, 9), bits(13, 8));
        let (levels, keys) = (bits(15, 6), bits(6, 3));
        let (heavy, light) = (bits(12, 8), bits(19, 12));
        let case = |name, path, shape: Shape, [columns, part]: [&'static str; 2]| Self {
            name,
            path,
            macros: [(columns, shape.column_bits), (part, shape.part_bits)]
                .into_iter()
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, bits)| (name, u64::from(bits)))
                .chain([("SYNC_FETCH", FETCH[usize::from(quick)])])
                .collect(),
            registers: &[],
            shape,
            flows: if quick { 512 } else { 8_192 },
        };
        vec![
            Self {
                registers: &["flows"],
                ..case(
                    "count-min",
                    "apps/count-min/count_min.p4",
                    Shape::count_min(SEED, 0, 3, bits(16, 10)),
                    ["COUNT_MIN_COLUMN_BITS", ""],
                )
            },
            case(
                "FlowRadar",
                "apps/flow-radar/flow_radar.p4",
                of(Family::FlowRadar, 3, cells, filter),
                ["FLOW_RADAR_CELL_BITS", "FLOW_RADAR_FILTER_BITS"],
            ),
            case(
                "UnivMon",
                "apps/univmon/univmon.p4",
                of(Family::UnivMon, 32, levels, keys),
                ["UNIVMON_COLUMN_BITS", "UNIVMON_KEY_BITS"],
            ),
            case(
                "SketchLearn",
                "apps/sketch-learn/sketch_learn.p4",
                of(Family::SketchLearn, 32, bits(15, 6), 0),
                ["SKETCH_LEARN_COLUMN_BITS", ""],
            ),
            case(
                "ElasticSketch",
                "apps/elastic-sketch/elastic_sketch.p4",
                of(Family::Elastic, 1, heavy, light),
                ["ELASTIC_HEAVY_BITS", "ELASTIC_LIGHT_BITS"],
            ),
        ]
    }

    /// The program with its registers in view.
    ///
    /// # Errors
    /// `EV003` with what the compiler says.
    pub(super) fn viewed(&self) -> Result<Viewed, EvalError> {
        Viewed::new(self.name, shipped(self.path)?, &self.macros, self.registers)
    }

    /// Its traffic.
    pub(super) fn source(&self) -> Source {
        Source::drawn(self.flows, 1, false)
    }

    /// Means over its packets.
    ///
    /// # Errors
    /// `EV003` if a size is out of its range.
    pub(super) fn bytes(&self) -> Result<Bytes, EvalError> {
        let (mut plane, mut source) = (Plane::of(self.shape)?, self.source());
        let mut updates = Vec::new();
        let (mut sync, mut pushed) = (0.0, 0.0);
        for _ in 0..SAMPLE {
            let packet: Packet = source.packet();
            plane.packet(&packet, &mut updates);
            sync += updates.len() as f64 * (194.0 / BATCH + 12.0);
            pushed += push_bytes(updates.len());
        }
        Ok(Bytes {
            sync: sync / SAMPLE as f64,
            pushed: pushed / SAMPLE as f64,
        })
    }
}
