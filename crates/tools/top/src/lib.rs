//! Heavy hitters, bounds and losses of a synchronised switch, live.
//!
//! A [`Source`] looks at register groups: [`Local`] runs a switch, its engine and traffic in this
//! process, [`Remote`] asks an engine that runs. A [`Model`] keeps the looks, [`draw`] makes a
//! picture of it for a terminal, [`text`] and [`svg`] for a file, [`line`] JSON. [`screen`],
//! [`once`], [`lines`] and [`web`] bring them together.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "sources have clocks and threads, the page has a socket"
)]

mod draw;
mod error;
mod json;
mod local;
mod look;
mod model;
mod number;
mod picture;
mod plot;
mod remote;
mod row;
mod run;
mod web;

pub use draw::{Paint, draw};
pub use error::TopError;
pub use json::{history, line};
pub use local::{FLOWS, Local, Settings, Traffic};
pub use look::{Finding, GroupLook, Look, Promise, Row, Source, Title};
pub use model::{Group, Model, Press, Sample};
pub use picture::{painted, svg, text};
pub use plot::Plot;
pub use remote::{Reach, Remote, Sketched};
pub use run::{lines, once, screen, web};
