//! `stateplane eval p4mcast`: the figure of Boughzala and Koldehofe, "In-Network Total Order Guarantees
//! supporting State Machine Replication with P4 Programmable Switches" (poster, ICNP 2024), with
//! multicast as it ships, beside systems that order messages otherwise; and what the poster leaves open.

mod bed;
mod copies;
mod etcd;
mod frame;
mod host;
mod latency;
mod member;
mod order;
mod own;
mod plain;
mod primcast;
mod rates;
mod system;
mod turns;

pub use host::{HostArguments, run as run_host};
pub use member::{MemberArguments, run as run_member};

use crate::error::EvalError;
use crate::experiments::Plan;
use crate::figure::Figure;
use crate::options::{self, LabOptions, Place};
use crate::series;
use bed::Spans;
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use stateplane_lab::become_root;
use system::System;

/// A figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Throughput and latency by bytes of a frame, of messages to one group and to two.
    Fig4,
    /// Throughput by share of messages to two groups.
    Shares,
    /// Throughput by members of a group.
    Members,
    /// Throughput by share of packets lost.
    Loss,
}

impl Experiment {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Fig4, Self::Shares, Self::Members, Self::Loss];
}

/// Options of the experiments.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Figures; all if none is named.
    #[arg(value_enum)]
    pub figures: Vec<Experiment>,
    /// Systems to compare with; all that can be had if none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub systems: Vec<System>,
    /// Amount of measurement, and places of files.
    #[command(flatten)]
    pub lab: LabOptions,
}

/// Parts with which an experiment is made.
struct Setting<'a> {
    place: &'a Place,
    plan: Plan,
    /// Systems, that which is evaluated first.
    systems: &'a [System],
    bar: &'a ProgressBar,
}

/// Frame, in bytes, at which claims are judged.
const SMALL: usize = 150;

impl Options {
    /// Makes the experiments one after the other; each is written as soon as it is done.
    pub(crate) fn run(&self) -> Result<Vec<Figure>, EvalError> {
        let plan = self.lab.plan()?;
        let chosen = series::chosen(&self.figures, &Experiment::ALL);
        become_root()?;
        let systems = options::beside(System::Stateplane, &self.systems, &System::ALL);
        // Loads keep all processors busy, and a run that shows that everything works may share them with
        // others.
        let place = self.lab.place(1000)?;
        self.lab.make(chosen, |experiment, bar| {
            let setting = Setting {
                place: &place,
                plan,
                systems: &systems,
                bar,
            };
            match experiment {
                Experiment::Fig4 => latency::run(&setting),
                Experiment::Shares => rates::by_share(&setting),
                Experiment::Members => rates::by_members(&setting),
                Experiment::Loss => rates::by_loss(&setting),
            }
        })
    }
}

impl Setting<'_> {
    /// Messages that each of two senders has in flight: 256 together.
    fn in_flight(&self) -> u8 {
        if self.plan.quick { 16 } else { 128 }
    }

    fn spans(&self) -> Spans {
        if self.plan.quick {
            Spans {
                warm_us: 100_000,
                counted_us: 200_000,
                drain_us: 1_500_000,
            }
        } else {
            Spans {
                warm_us: 300_000,
                counted_us: 1_000_000,
                drain_us: 500_000,
            }
        }
    }
}

/// In what all experiments differ from the poster's.
fn all_differ(figure: &mut Figure) {
    figure.differs(
        "one machine instead of two Tofino switches and two servers: switches, hosts and the controller \
         are processes in network namespaces, joined by a bridge, and share its processors",
    );
    figure.differs(
        "groups of switches of their own, three receivers of each and two hosts that send; the poster \
         has one switch that leads, one that follows, and one receiver",
    );
    figure.differs(
        "a frame's length is that of a message from its sender; values of the etcd log are as long as the \
         payload of such a frame of ours",
    );
    figure.differs(
        "like PrimCast: members are processes on the kernel's UDP sockets in the places of the \
         switches, one datagram a message of the protocol; senders send to leaders, whose proposals \
         have the payload for their own group; nothing is recovered from loss or failure",
    );
    figure.differs(
        "the etcd log has one order for all groups, and every receiver watches all of it; three \
         members in the places of the first group's switches, files in memory, puts to the leader on a \
         connection for each message in flight; a put is complete when it is answered, messages of \
         others when all receivers have them",
    );
    figure.differs(
        "the poster's protocol as printed leaves loss, failures and the receivers' order open; here \
         proposals are numbered, and a switch decides a message when its own leader too has \
         acknowledged it, so that receivers can order (lab/eval/p4mcast/poster.p4); it has as many \
         messages in flight as the queue of 256 frames in front of each switch takes acknowledgements of, \
         since a loss would stop it: 84 with a group of three, 50 with five",
    );
    figure.differs(
        "the limit is a switch that gives each message to all receivers of its groups by a plain \
         multicast group; receivers return credits every 32 messages, so that nothing overflows",
    );
}
