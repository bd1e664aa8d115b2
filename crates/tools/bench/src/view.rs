//! Programs in view of the control plane, and sources of packets for them.

use crate::{Numbers, frame};
use stateplane_diagnostics::{Color, render_all};
use stateplane_synchronise::{Plan, Selection, synchronise};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

/// Sources that frames have.
pub const SOURCES: u64 = 65_536;

/// Exponent of Zipf's law: how many packets a source has, by its rank.
const EXPONENT: f64 = 1.05;

/// A program in view of the control plane.
pub struct InView {
    /// Its text, with the library.
    pub text: String,
    /// Its groups.
    pub plan: Plan,
}

/// Instruments `program`, a path in the repository, with macros.
///
/// # Panics
///
/// If it is refused.
pub fn in_view(program: &str, macros: &[(&str, u64)]) -> InView {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(program);
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let macros = macros
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.to_string()));
    let source = stateplane_compile::file(&path.to_string_lossy(), read).defines(macros);
    let (loader, options) = (source.loader(), source.options());
    let made = synchronise(loader, source.main_file(), options, Selection::Annotated);
    let Some((text, plan)) = made.program else {
        panic!(
            "{}",
            render_all(&made.diagnostics, &made.sources, Color::Never)
        );
    };
    InView { text, plan }
}

/// Sources of packets as Zipf's law says, at places that have no order.
pub struct Sources {
    sums: Vec<f64>,
    numbers: Numbers,
}

impl Sources {
    /// Packets of `sources` of them.
    pub fn new(sources: u64) -> Sources {
        let weight = |rank: u64| (rank as f64).powf(-EXPONENT);
        let mut sum = 0.0;
        let sums = (1..=sources).map(|rank| {
            sum += weight(rank);
            sum
        });
        Sources {
            sums: sums.collect(),
            numbers: Numbers(7),
        }
    }

    /// The source of the next packet.
    pub fn draw(&mut self) -> u32 {
        let all = self.sums[self.sums.len() - 1];
        let drawn = self.numbers.unit() * all;
        let rank = self.sums.partition_point(|sum| *sum < drawn);
        (rank as u32).wrapping_mul(0x9e37_79b1) % self.sums.len() as u32
    }

    /// `count` datagrams of them, of 60 to 1,500 bytes.
    pub fn frames(&mut self, count: usize) -> Vec<Vec<u8>> {
        let to = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 7000);
        let lengths = [60, 60, 60, 576, 1500];
        (0..count)
            .map(|at| {
                let source = Ipv4Addr::from_bits(0x0a00_0000 | self.draw());
                frame::udp(
                    SocketAddrV4::new(source, 9),
                    to,
                    lengths[at % lengths.len()],
                )
            })
            .collect()
    }
}
