//! `stateplane eval multicast-host`: a sender or a receiver of one of the systems, in its node. It
//! says `ready`, takes a [`Load`] a line and answers each.

use super::etcd::{LogReceiver, LogSender};
use super::order::{GROUPS, HEADERS, Load, SHORTEST, Tally, Told, fill, number};
use super::own::{OwnReceiver, OwnSender};
use super::plain::{PlainReceiver, PlainSender};
use super::system::{Shape, System};
use clap::Args;
use stateplane_host::clock::boot_time_us;
use stateplane_random::Random;
use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Longest time in µs for which a host waits before it looks for an order.
const LOOK_US: u64 = 5_000;

/// Arguments of a host.
#[derive(Clone, Debug, Args)]
pub struct HostArguments {
    /// Its system.
    #[arg(value_enum)]
    system: System,
    /// Its number among the senders, or among the receivers.
    #[arg(long)]
    number: u8,
    /// It receives.
    #[arg(long)]
    receives: bool,
    /// Messages that it may have in flight; a receiver's are those of each sender.
    #[arg(long)]
    in_flight: u8,
    /// Groups.
    #[arg(long)]
    groups: u8,
    /// Members of a group.
    #[arg(long)]
    members: u8,
}

impl HostArguments {
    fn shape(&self) -> Shape {
        Shape {
            groups: self.groups.clamp(1, GROUPS as u8),
            members: self.members,
        }
    }
}

/// A system's sender.
pub trait Sends {
    /// Messages that are not complete.
    fn under_way(&self) -> usize;

    /// Sends a message to the groups in the map `to`; false if it cannot at the moment.
    ///
    /// # Errors
    /// The system ended.
    fn send(&mut self, to: u32, number: u64, payload: &[u8]) -> Result<bool, String>;

    /// Lets messages leave, and waits until something comes or `until`.
    ///
    /// # Errors
    /// The system ended.
    fn step(&mut self, until: u64) -> Result<(), String>;
}

/// A system's receiver.
pub trait Receives {
    /// Waits until something comes or `until`, and gives messages that are delivered to `take`, each
    /// with the time of its delivery.
    ///
    /// # Errors
    /// The system ended.
    fn step(&mut self, until: u64, take: &mut dyn FnMut(u64, &[u8])) -> Result<(), String>;
}

/// Runs a host until its input ends.
pub fn run(arguments: &HostArguments) {
    let orders = match orders() {
        Ok(orders) => orders,
        Err(error) => return say(&error.to_string()),
    };
    let ended = if arguments.receives {
        receiver(arguments).and_then(|host| receive_all(host, &orders))
    } else {
        sender(arguments).and_then(|host| send_all(host, &orders, arguments))
    };
    if let Err(error) = ended {
        say(&error);
    }
}

/// Loads, as they come on the standard input.
fn orders() -> std::io::Result<Receiver<Load>> {
    let (tell, orders) = channel();
    std::thread::Builder::new().spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let load = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            if load.is_none_or(|load| tell.send(load).is_err()) {
                return;
            }
        }
    })?;
    Ok(orders)
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn answer(told: Result<Told, String>, before: f64) {
    let mut told = told.unwrap_or_else(|error| Told {
        error: Some(error),
        ..Told::default()
    });
    told.processor_s = crate::nodes::processor_s() - before;
    say(&serde_json::to_string(&told).unwrap_or_default());
}

fn sender(arguments: &HostArguments) -> Result<Box<dyn Sends>, String> {
    let (shape, in_flight) = (arguments.shape(), arguments.in_flight);
    Ok(match arguments.system {
        System::Stateplane => Box::new(OwnSender::open(in_flight)?),
        System::Etcd => Box::new(LogSender::open(shape, in_flight)?),
        plain => Box::new(PlainSender::open(plain, shape, arguments.number)?),
    })
}

fn receiver(arguments: &HostArguments) -> Result<Box<dyn Receives>, String> {
    let (shape, number) = (arguments.shape(), arguments.number);
    Ok(match arguments.system {
        System::Stateplane => Box::new(OwnReceiver::open(number)?),
        System::Etcd => Box::new(LogReceiver::open(shape, number)?),
        plain => Box::new(PlainReceiver::open(plain, number, arguments.in_flight)?),
    })
}

fn send_all(
    mut sender: Box<dyn Sends>,
    orders: &Receiver<Load>,
    arguments: &HostArguments,
) -> Result<(), String> {
    say("ready");
    loop {
        match orders.try_recv() {
            Ok(load) => {
                let before = crate::nodes::processor_s();
                answer(send(&mut *sender, &load, arguments), before);
            }
            Err(TryRecvError::Disconnected) => return Ok(()),
            Err(TryRecvError::Empty) => sender.step(boot_time_us() + LOOK_US)?,
        }
    }
}

/// Times at which messages are to be sent: gaps differ by up to a half.
struct Times {
    period_ns: u64,
    next_ns: u64,
    random: Random,
}

impl Times {
    fn new(load: &Load, mut random: Random) -> Self {
        let first = random.between(0, load.period_ns);
        Self {
            period_ns: load.period_ns,
            next_ns: load.start_us * 1000 + first,
            random,
        }
    }

    /// Time of the next message in µs, `now` if all are to leave as soon as they may.
    fn due(&self, now: u64) -> u64 {
        match self.period_ns {
            0 => now,
            _ => self.next_ns.div_ceil(1000),
        }
    }

    fn pass(&mut self) {
        let half = self.period_ns / 2;
        self.next_ns += self.period_ns - half + self.random.between(0, 2 * half);
    }
}

fn send(sender: &mut dyn Sends, load: &Load, arguments: &HostArguments) -> Result<Told, String> {
    let header = arguments.system.header();
    let mut payload = vec![0; load.frame.saturating_sub(HEADERS + header).max(SHORTEST)];
    let mut random = Random::new(u64::from(load.number) << 8 | u64::from(arguments.number));
    let mut times = Times::new(load, random.split());
    while boot_time_us() < load.start_us {
        sender.step(load.start_us)?;
    }
    let (mut sent, mut most) = (0, 0);
    loop {
        let mut now = boot_time_us();
        if now >= load.to_us {
            break;
        }
        let mut full = false;
        while times.due(now) <= now {
            full = sender.under_way() >= load.in_flight;
            if full {
                break;
            }
            let to = address(load, &mut random);
            let number = number(load.number, arguments.number, sent);
            fill(&mut payload, times.due(now), number, to);
            full = !sender.send(to, number, &payload)?;
            if full {
                break;
            }
            sent += 1;
            times.pass();
            most = most.max(sender.under_way());
            now = boot_time_us();
        }
        let next = if full { load.to_us } else { times.due(now) };
        sender.step(next.min(load.to_us))?;
    }
    if load.period_ns == 0 && most < load.in_flight {
        return Err(format!("{most} of {} were in flight", load.in_flight));
    }
    while sender.under_way() > 0 && boot_time_us() < load.end_us {
        sender.step(load.end_us)?;
    }
    Ok(Told {
        sent,
        ..Told::default()
    })
}

/// Map of the groups of a message.
fn address(load: &Load, random: &mut Random) -> u32 {
    let all = (1 << load.groups) - 1;
    if load.groups == 1 || random.between(0, 999) < u64::from(load.several_permille) {
        all
    } else {
        1 << random.between(0, u64::from(load.groups) - 1)
    }
}

fn receive_all(mut receiver: Box<dyn Receives>, orders: &Receiver<Load>) -> Result<(), String> {
    say("ready");
    loop {
        match orders.try_recv() {
            Ok(load) => {
                let before = crate::nodes::processor_s();
                answer(receive(&mut *receiver, load), before);
            }
            Err(TryRecvError::Disconnected) => return Ok(()),
            Err(TryRecvError::Empty) => {
                receiver.step(boot_time_us() + LOOK_US, &mut |_, _| {})?;
            }
        }
    }
}

fn receive(receiver: &mut dyn Receives, load: Load) -> Result<Told, String> {
    let mut tally = Tally::new(load);
    while boot_time_us() < load.end_us {
        receiver.step(load.end_us, &mut |at, payload| tally.take(at, payload))?;
    }
    Ok(tally.told())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load {
        number: 1,
        start_us: 1000,
        from_us: 1000,
        to_us: 2000,
        end_us: 3000,
        frame: 150,
        in_flight: 4,
        period_ns: 10_000,
        groups: 2,
        several_permille: 500,
    };

    #[test]
    fn messages_are_due_at_the_rate_whatever_happens_to_them() {
        let mut times = Times::new(&LOAD, Random::new(1));
        let first = times.due(0);
        assert!((1000..=1010).contains(&first));
        for _ in 0..1000 {
            let before = times.due(0);
            times.pass();
            assert!((4..=16).contains(&(times.due(0) - before)));
        }
        assert!((9_500..10_500).contains(&(times.due(0) - first)));
        let fast = Load {
            period_ns: 0,
            ..LOAD
        };
        assert_eq!(Times::new(&fast, Random::new(1)).due(77), 77);
    }

    #[test]
    fn the_share_of_messages_to_all_groups_is_that_of_the_load() {
        let mut random = Random::new(1);
        let mut count = [0; 4];
        for _ in 0..10_000 {
            count[address(&LOAD, &mut random) as usize] += 1;
        }
        assert_eq!(count[0], 0);
        assert!((2_200..2_800).contains(&count[1]), "{count:?}");
        assert!((4_800..5_200).contains(&count[3]), "{count:?}");
        let one = Load { groups: 1, ..LOAD };
        assert_eq!(address(&one, &mut random), 1);
    }
}
