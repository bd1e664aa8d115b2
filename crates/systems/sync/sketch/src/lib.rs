//! The control plane's half of sketches: what a view of a switch's registers says about flows.
//!
//! A [`Sketch`] is a [`Shape`] (family, seed, sizes) and a [`Reading`] of each of its register
//! groups, from a view of sync or from one of its windows. [`Sketch::query`] answers with an
//! [`Interval`] in which the flow's count was, and how sure its ends are; the bound of the view is
//! in it (rule 27 of `docs/sync-protocol.md`). [`detect`] finds heavy hitters, icebergs, victims
//! of many sources and super-spreaders; [`Distinct`] counts partners of an address; [`Flood`] gives
//! verdicts about windows of exact counts.
//!
//! [`Sketch::update`] does to the values what the P4 programs of `apps` do to their registers.

mod address;
mod count_min;
pub mod detect;
mod distinct;
mod elastic;
mod error;
mod flood;
mod flow_radar;
mod hash;
mod hash_pipe;
mod interval;
mod key;
mod reading;
mod serial;
mod shape;
mod sketch;
mod sketch_learn;
mod univmon;

pub use distinct::{Distinct, Pairs};
pub use error::SketchError;
pub use flood::Flood;
pub use flow_radar::{Decoded, Flow};
pub use hash::{Hash, coefficient};
pub use interval::{Interval, Verdict};
pub use key::{Key, KeyError};
pub use reading::Reading;
pub use shape::{Family, Shape};
pub use sketch::Sketch;
