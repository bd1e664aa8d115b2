//! Engines that stand by for each other: candidates with clocks of their own, and the store that elects
//! one of them and keeps windows, over calls that are late or lost.

use crate::engines::Process;
use crate::program::GROUPS;
use crate::simulator::SimError;
use crate::world::{Happening, World, no_totals};
use stateplane_sync::election::{Answer, Election, ElectionSettings, Holder, Request};
use stateplane_world::{Clock, Net, Random};

/// Detection time of the election in µs.
const DETECTION: u64 = 4_000;

/// Time between two turns of a candidate's loop.
const TURN: u64 = 50;

/// Time before a call is given up, from when the store would have answered at once.
const PATIENCE: u64 = DETECTION / 4;

/// Greatest deviation of a clock, in parts per million: two differ by less than one part in 32.
const DRIFT_PPM: u32 = 15_000;

/// A candidate, of the given number, and its life: what is for an earlier one goes astray.
pub(crate) type To = (usize, u32);

/// Something that a candidate or the store is to do.
pub(crate) enum Step {
    /// All candidates take a turn.
    Turn,
    /// The store takes a step of the election; its answer comes, or is lost.
    Vote {
        to: To,
        request: Request,
        comes: bool,
    },
    /// The store reads what it keeps.
    Load { to: To, term: u64 },
    /// The store keeps a window, if the term is the greatest.
    Keep { to: To, term: u64, window: Window },
    /// A candidate gets an answer.
    Told { to: To, said: Said },
    /// A candidate that stood still goes on.
    Wakes { to: To },
    /// A candidate that died starts anew.
    Returns { candidate: usize },
}

/// A window of a group.
pub(crate) struct Window {
    pub(crate) group: u16,
    pub(crate) incarnation: u32,
    pub(crate) epoch: u32,
    pub(crate) values: Vec<u64>,
}

/// An answer of the store.
pub(crate) enum Said {
    Elected(Answer),
    Loaded {
        term: u64,
        /// Last windows, of each group; `None` if the term is not the greatest.
        kept: Option<Vec<Vec<(u32, u32)>>>,
    },
    Kept {
        term: u64,
        group: u16,
        incarnation: u32,
        epoch: u32,
        kept: bool,
    },
}

/// State of the election in the store.
#[derive(Default)]
struct Register {
    revision: u64,
    holder: Option<Holder>,
    term: u64,
}

impl Register {
    fn answer(&mut self, request: &Request) -> Answer {
        let is_holder = |of: &Holder| self.holder.as_ref() == Some(of);
        let next = match request {
            Request::Look => {
                return Answer::Seen {
                    revision: self.revision,
                    holder: self.holder.clone(),
                    term: self.term,
                };
            }
            Request::Take { revision, holder } if *revision == self.revision => {
                self.term = holder.term;
                holder.clone()
            }
            Request::Renew { holder } if is_holder(holder) => holder.clone(),
            Request::Leave { holder } if is_holder(holder) => Holder {
                left: true,
                ..holder.clone()
            },
            _ => return Answer::Refused,
        };
        self.revision += 1;
        self.holder = Some(next);
        Answer::Done
    }
}

struct Candidate {
    election: Election,
    clock: Clock,
    life: u32,
    is_alive: bool,
    is_asleep: bool,
    /// Term for which it reads what the store keeps.
    loading: Option<u64>,
    /// Answers that came while it stood still.
    inbox: Vec<Said>,
}

/// Candidates and their store.
pub(crate) struct Standby {
    register: Register,
    candidates: Vec<Candidate>,
    /// Calls fail until traffic ends.
    is_whole: bool,
    /// A candidate goes on to act when its lease is over: the rule that is turned off.
    acts_on: bool,
}

fn elected(nonce: u64, now: u64) -> Election {
    Election::new(
        now,
        ElectionSettings {
            nonce,
            address: String::new(),
            detection_us: DETECTION,
            least_term: 1,
        },
    )
}

impl Standby {
    pub(crate) fn new(count: u64, acts_on: bool, random: &mut Random) -> Self {
        let candidates = (0..count).map(|_| {
            let clock = Clock::draw(random, 0, DRIFT_PPM);
            Candidate {
                election: elected(random.next(), clock.local(0)),
                clock,
                life: 0,
                is_alive: true,
                is_asleep: false,
                loading: None,
                inbox: Vec::new(),
            }
        });
        Self {
            register: Register::default(),
            candidates: candidates.collect(),
            is_whole: false,
            acts_on,
        }
    }

    /// Calls are answered from now on.
    pub(crate) fn heal(&mut self) {
        self.is_whole = true;
    }

    /// Terms of candidates whose lease is in force.
    pub(crate) fn leading(&self, now: u64) -> impl Iterator<Item = u64> {
        let alive = self.candidates.iter().filter(|one| one.is_alive);
        alive.filter_map(move |one| one.election.leads(one.clock.local(now)))
    }

    /// True if a process of a candidate may act.
    fn may_act(&self, now: u64, process: &Process) -> bool {
        let one = &self.candidates[process.candidate];
        self.acts_on || one.election.leads(one.clock.local(now)) == Some(process.term)
    }

    fn is_of(&self, (candidate, life): To) -> bool {
        let one = &self.candidates[candidate];
        one.is_alive && one.life == life
    }

    /// Time for a call to reach the store, or the answer the candidate.
    fn way(&self, random: &mut Random) -> u64 {
        match random.place(20) {
            0 if !self.is_whole => random.between(100, 2 * PATIENCE),
            _ => random.between(20, 200),
        }
    }

    /// True if a call or answer is lost.
    fn loses(&self, random: &mut Random) -> bool {
        !self.is_whole && random.permille(100)
    }
}

type WorldNet = Net<Vec<u8>, Happening>;

fn plan(net: &mut WorldNet, at: u64, step: Step) {
    net.plan(at, Happening::Standby(step));
}

impl World<'_> {
    /// Begins the candidates' turns.
    pub(crate) fn begin_standby(&mut self) {
        if self.standby.is_some() {
            plan(&mut self.net, 0, Step::Turn);
        }
    }

    /// Ends what candidates did as leaders whose lease is over.
    pub(crate) fn end_leases(&mut self) {
        let Some(standby) = &self.standby else {
            return;
        };
        let now = self.net.now();
        let maybe = &mut self.maybe;
        self.host.processes.retain(|process| {
            let stays = process.is_asleep || standby.may_act(now, process);
            if !stays {
                *maybe += process.open;
            }
            stays
        });
    }

    /// Objects if a process acted while another candidate had the lease.
    pub(crate) fn judge_acts(&mut self) {
        let Some(standby) = &self.standby else {
            return self.host.acted.clear();
        };
        let now = self.net.now();
        let leading: Vec<u64> = standby.leading(now).collect();
        for term in std::mem::take(&mut self.host.acted) {
            if let Some(other) = leading.iter().find(|other| **other != term) {
                self.judge.object(
                    "lease",
                    format!("{now} µs: the engine with term {term} acts while {other} leads"),
                );
            }
        }
    }

    /// A fault of the candidate that leads, or of any while none does: it stands still, or dies and
    /// returns.
    pub(crate) fn fail_candidate(&mut self, lives: bool) {
        let Some(standby) = &mut self.standby else {
            return;
        };
        let now = self.net.now();
        let random = &mut self.net.random;
        let leader = standby
            .candidates
            .iter()
            .position(|one| one.is_alive && one.election.leads(one.clock.local(now)).is_some());
        let any = random.place(standby.candidates.len());
        let chosen = leader.unwrap_or(any);
        let until = now + random.between(1, 3 * DETECTION);
        let one = &mut standby.candidates[chosen];
        if !one.is_alive || one.is_asleep {
            return;
        }
        if lives {
            one.is_asleep = true;
            let to = (chosen, one.life);
            plan(&mut self.net, until, Step::Wakes { to });
            for process in &mut self.host.processes {
                process.is_asleep |= process.candidate == chosen;
            }
        } else {
            one.is_alive = false;
            plan(&mut self.net, until, Step::Returns { candidate: chosen });
            let maybe = &mut self.maybe;
            self.host.processes.retain(|process| {
                let dies = process.candidate == chosen;
                *maybe += if dies { process.open } else { 0 };
                !dies
            });
        }
    }

    /// A window came, which the store is to keep.
    pub(crate) fn keep(&mut self, process: usize, window: Window) {
        let Some(standby) = &mut self.standby else {
            return;
        };
        let process = &self.host.processes[process];
        let to = (
            process.candidate,
            standby.candidates[process.candidate].life,
        );
        let step = Step::Keep {
            to,
            term: process.term,
            window,
        };
        let at = self.net.now() + standby.way(&mut self.net.random);
        plan(&mut self.net, at, step);
    }

    pub(crate) fn standby_step(&mut self, step: Step) -> Result<(), SimError> {
        let now = self.net.now();
        let Some(standby) = &mut self.standby else {
            return Ok(());
        };
        let back = |standby: &Standby, net: &mut WorldNet, to: To, said: Said| {
            let at = now + standby.way(&mut net.random);
            plan(net, at, Step::Told { to, said });
        };
        match step {
            Step::Turn => {
                plan(&mut self.net, now + TURN, Step::Turn);
                self.end_leases();
                self.turn_candidates();
            }
            Step::Vote { to, request, comes } => {
                let answer = standby.register.answer(&request);
                if comes {
                    back(standby, &mut self.net, to, Said::Elected(answer));
                }
            }
            Step::Load { to, term } => {
                let is_greatest = standby.register.term == term;
                let groups = 0..GROUPS as u16;
                let kept =
                    is_greatest.then(|| groups.map(|group| self.judge.kept(group)).collect());
                back(standby, &mut self.net, to, Said::Loaded { term, kept });
            }
            Step::Keep { to, term, window } => {
                let kept = standby.register.term == term;
                let (group, incarnation, epoch) = (window.group, window.incarnation, window.epoch);
                if kept {
                    let place = (incarnation, group, epoch.into());
                    let is_new = self.judge.window(now, place, &window.values);
                    self.coverage.windows += u64::from(is_new);
                }
                let said = Said::Kept {
                    term,
                    group,
                    incarnation,
                    epoch,
                    kept,
                };
                back(standby, &mut self.net, to, said);
            }
            Step::Told { to, said } if standby.is_of(to) => {
                let one = &mut standby.candidates[to.0];
                if one.is_asleep {
                    one.inbox.push(said);
                } else {
                    self.end_leases();
                    self.told(to, said)?;
                }
            }
            Step::Wakes { to } if standby.is_of(to) => {
                let one = &mut standby.candidates[to.0];
                one.is_asleep = false;
                let inbox = std::mem::take(&mut one.inbox);
                for process in &mut self.host.processes {
                    process.is_asleep &= process.candidate != to.0;
                }
                self.end_leases();
                for said in inbox {
                    self.told(to, said)?;
                }
                self.after_engines();
            }
            Step::Returns { candidate } => {
                let clock = Clock::draw(&mut self.net.random, now, DRIFT_PPM);
                let one = &mut standby.candidates[candidate];
                *one = Candidate {
                    election: elected(self.net.random.next(), clock.local(now)),
                    clock,
                    life: one.life + 1,
                    is_alive: true,
                    is_asleep: false,
                    loading: None,
                    inbox: Vec::new(),
                };
            }
            Step::Told { .. } | Step::Wakes { .. } => {}
        }
        Ok(())
    }

    fn turn_candidates(&mut self) {
        let now = self.net.now();
        let Some(standby) = &mut self.standby else {
            return;
        };
        for at in 0..standby.candidates.len() {
            let one = &mut standby.candidates[at];
            if !one.is_alive || one.is_asleep {
                continue;
            }
            let (local, to) = (one.clock.local(now), (at, one.life));
            let request = one.election.poll_request(local);
            let leads = one.election.leads(local);
            let is_idle = one.loading.is_none();
            let mut works = self.host.processes.iter();
            let works = works.any(|it| it.candidate == at && Some(it.term) == leads);
            let load = leads.filter(|_| is_idle && !works);
            if let Some(term) = load {
                one.loading = Some(term);
                let there = now + standby.way(&mut self.net.random);
                plan(&mut self.net, there, Step::Load { to, term });
            }
            if let Some(request) = request {
                let (there, random) = (
                    now + standby.way(&mut self.net.random),
                    &mut self.net.random,
                );
                let (arrives, comes) = (!standby.loses(random), !standby.loses(random));
                if !(arrives && comes) {
                    let said = Said::Elected(Answer::Failed);
                    let given_up = now + PATIENCE;
                    plan(&mut self.net, given_up, Step::Told { to, said });
                }
                if arrives {
                    plan(&mut self.net, there, Step::Vote { to, request, comes });
                }
            }
        }
    }

    /// A candidate takes an answer.
    fn told(&mut self, to: To, said: Said) -> Result<(), SimError> {
        let now = self.net.now();
        let Some(standby) = &mut self.standby else {
            return Ok(());
        };
        let one = &mut standby.candidates[to.0];
        let local = one.clock.local(now);
        match said {
            Said::Elected(answer) => one.election.handle_answer(local, answer),
            Said::Loaded { term, kept } => {
                one.loading = None;
                let leads = one.election.leads(local) == Some(term);
                if let Some(kept) = kept.filter(|_| leads) {
                    self.coverage.led += 1;
                    let kept = |group| kept[usize::from(group)].clone();
                    self.begin_process(to.0, term, kept, no_totals())?;
                }
            }
            Said::Kept { term, kept, .. } if !kept => {
                if one.election.leads(local) == Some(term) {
                    one.election.lost(local);
                }
            }
            Said::Kept {
                term,
                group,
                incarnation,
                epoch,
                ..
            } => {
                let mut processes = self.host.processes.iter_mut();
                let process = processes.find(|it| it.candidate == to.0 && it.term == term);
                if let Some(process) = process {
                    process.groups[usize::from(group)].window_kept(incarnation, epoch);
                }
                self.after_engines();
            }
        }
        Ok(())
    }
}
