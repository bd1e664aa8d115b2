//! An engine's part in the election of the one that leads, over a store that engines share.

use std::io;
use std::os::fd::RawFd;

use stateplane_sync::election::Election;

use super::work::Work;
use super::{Ask, Fact, Kept, Outcomes, SharedStore, Told};
use crate::clock::boot_time_us;
use crate::poll::Readable;
use crate::remote::RemoteCalls;

/// Longest time in µs for the store to note that this engine has left.
const LEAVING: u64 = 500_000;

/// Time between two looks meanwhile.
const PAUSE: u64 = 5_000;

/// A candidate, and the store that elects.
pub(super) struct Candidate {
    election: Election,
    store: Box<dyn SharedStore>,
    outcomes: RemoteCalls<Outcomes>,
    queue: Outcomes,
    /// Term for which facts were asked for.
    loading: Option<u64>,
    /// The facts for a term, once they came.
    loaded: Option<(u64, Vec<Fact>)>,
    /// The leader that was told last.
    told: Option<String>,
}

/// Its next step.
pub(super) enum Step {
    /// Go on.
    None,
    /// Lead under this term, with these facts.
    Begin { term: u64, facts: Vec<Fact> },
    /// Lead no more.
    StandBy,
}

impl Candidate {
    pub(super) fn new(
        election: Election,
        store: Box<dyn SharedStore>,
        outcomes: RemoteCalls<Outcomes>,
    ) -> Candidate {
        Candidate {
            election,
            store,
            outcomes,
            queue: Outcomes::default(),
            loading: None,
            loaded: None,
            told: None,
        }
    }

    /// Readable when the store has done something.
    pub(super) fn descriptor(&self) -> RawFd {
        self.outcomes.descriptor()
    }

    pub(super) fn poll_timeout(&self) -> Option<u64> {
        self.election.poll_timeout()
    }

    /// Its term, if it leads.
    pub(super) fn leads(&self, now: u64) -> Option<u64> {
        self.election.leads(now)
    }

    /// Address of the engine that leads, if another does.
    pub(super) fn leader(&self) -> Option<String> {
        let leader = self.election.leader()?;
        Some(leader.address.clone())
    }

    /// Gives the store what has to be kept next.
    pub(super) fn store(&mut self, term: u64, kept: &mut Kept) {
        if let Some(facts) = kept.poll_facts() {
            self.store.ask(Ask::Store { term, facts });
        }
    }

    /// Takes what the store has done, and asks what is due. `work` is there while the engine leads.
    pub(super) fn turn(&mut self, now: u64, mut work: Option<&mut Work>) -> Step {
        while let Some(add) = self.outcomes.poll() {
            add(&mut self.queue);
        }
        while let Some(told) = self.queue.pop() {
            self.take(now, told, work.as_deref_mut());
        }
        if let Some(term) = work.as_ref().and_then(|work| work.refused_term()) {
            self.election.exceed(now, term);
        }
        if let Some(request) = self.election.poll_request(now) {
            self.store.ask(Ask::Elect(request));
        }
        let leads = self.election.leads(now);
        match (leads, work) {
            (Some(term), Some(work)) if work.term == term => Step::None,
            (_, Some(_)) => {
                tracing::warn!("this engine leads no more: it stands by");
                self.told = None;
                Step::StandBy
            }
            (Some(term), None) => self.load(term),
            (None, None) => {
                self.tell_leader();
                Step::None
            }
        }
    }

    /// Facts that came, or the question for them.
    fn load(&mut self, term: u64) -> Step {
        match self.loaded.take() {
            Some((of, facts)) if of == term => {
                tracing::info!(term, "this engine leads");
                Step::Begin { term, facts }
            }
            _ => {
                if self.loading.is_none() {
                    self.loading = Some(term);
                    self.store.ask(Ask::Load { term });
                }
                Step::None
            }
        }
    }

    fn take(&mut self, now: u64, told: Told, work: Option<&mut Work>) {
        match told {
            Told::Elected(answer) => self.election.handle_answer(now, answer),
            Told::Loaded { term, facts } => {
                self.loading = None;
                self.loaded = facts.map(|facts| (term, facts));
            }
            Told::Stored { term, kept } => {
                let work = work.filter(|work| work.term == term);
                match work {
                    Some(work) if kept => work.kept.facts_kept(),
                    Some(_) => self.election.lost(now),
                    None => {}
                }
            }
        }
    }

    fn tell_leader(&mut self) {
        let leader = self.leader();
        if leader.is_some() && leader != self.told {
            let leader = leader.as_deref().unwrap_or_default();
            tracing::info!(leader, "this engine stands by");
        }
        self.told = leader.or(self.told.take());
    }

    /// Has the store keep what it lacks, and lets another lead, as the process ends.
    pub(super) fn leave(
        &mut self,
        readable: &mut Readable,
        mut work: Option<Work>,
    ) -> io::Result<()> {
        let end = boot_time_us() + LEAVING;
        while let Some(work) = work.as_mut().filter(|work| work.kept.is_behind())
            && boot_time_us() < end
        {
            self.store(work.term, &mut work.kept);
            if matches!(self.turn(boot_time_us(), Some(work)), Step::StandBy) {
                break;
            }
            readable.wait_until(boot_time_us() + PAUSE)?;
        }
        self.election.leave(boot_time_us());
        while !self.election.has_left() && boot_time_us() < end {
            self.turn(boot_time_us(), None);
            if !self.election.has_left() {
                readable.wait_until(boot_time_us() + PAUSE)?;
            }
        }
        Ok(())
    }
}
