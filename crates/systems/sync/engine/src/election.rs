//! The election of the engine that leads among several, without IO.
//!
//! A store that all engines reach has one value, the [`Holder`], with a revision that each write
//! of it changes, and writes it only under a condition. The holder writes it anew, which changes
//! nothing but the revision. Who saw no other revision for the detection time, by its own clock,
//! takes its place, on the condition that the revision is the one that it saw. The holder acts for
//! a little less than the detection time from when it *sent* the last write that was done: that is
//! over before another's time is, which began when the other had *seen* it, if no clock is faster
//! than another by more than one part in [`DRIFT`].

/// The lease is shorter than the detection time by one part in so many, for clocks of unequal speed.
pub const DRIFT: u64 = 32;

/// Writes of the holder in a detection time.
const RENEWALS: u64 = 4;

/// Looks of an engine that stands by in a detection time.
const LOOKS: u64 = 8;

/// Settings of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionSettings {
    /// Drawn at the start of the process, so that two candidates are never taken for one.
    pub nonce: u64,
    /// Address at which clients reach it; empty if they do not.
    pub address: String,
    /// µs without a sign of the holder after which another takes its place, at least 1,000.
    pub detection_us: u64,
    /// Its terms are at least this, and greater than all before.
    pub least_term: u64,
}

/// The engine that leads, as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its term.
    pub term: u64,
    /// Its candidate's nonce.
    pub nonce: u64,
    /// True once it does not lead any more, so that nobody need wait.
    pub left: bool,
    /// Its address for clients.
    pub address: String,
}

/// Request to the store, one at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Tell the holder, its revision, and the greatest term that was taken.
    Look,
    /// Make this the holder and keep its term, if the revision is this one.
    Take {
        /// The revision; 0 if there was no holder.
        revision: u64,
        /// The holder.
        holder: Holder,
    },
    /// Write the holder anew, if it is this one.
    Renew {
        /// The holder.
        holder: Holder,
    },
    /// Note that the holder has left, if it is this one.
    Leave {
        /// The holder, which leads.
        holder: Holder,
    },
}

/// The store's answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To a look.
    Seen {
        /// The holder's revision; 0 if there is none.
        revision: u64,
        /// The holder.
        holder: Option<Holder>,
        /// The greatest term that was taken; 0 if there is none.
        term: u64,
    },
    /// It was written.
    Done,
    /// The condition does not hold: nothing was written.
    Refused,
    /// No answer: nobody knows.
    Failed,
}

/// One of several engines.
#[derive(Debug)]
pub struct Election {
    settings: ElectionSettings,
    state: State,
    /// The holder that leads, if another does.
    leader: Option<Holder>,
    /// The greatest term that is known to be taken.
    greatest: u64,
    /// The request without an answer, and when it was sent.
    open: Option<(Request, u64)>,
    /// When the next request is due.
    due: u64,
    is_leaving: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Another may lead: the revision that was seen last, and since when.
    Standby { seen: Option<(u64, u64)> },
    /// No other leads: take its place if it is still so.
    Candidate { revision: u64 },
    /// It leads until then.
    Leading { holder: Holder, until: u64 },
    /// It has left.
    Left,
}

impl Election {
    /// A candidate that stands by from `now` on.
    pub fn new(now: u64, settings: ElectionSettings) -> Election {
        Election {
            settings,
            state: State::Standby { seen: None },
            leader: None,
            greatest: 0,
            open: None,
            due: now,
            is_leaving: false,
        }
    }

    /// Its term, if it leads at `now`. Ask before each act: nothing may be done without.
    pub fn leads(&self, now: u64) -> Option<u64> {
        match &self.state {
            State::Leading { holder, until } if now < *until && !self.is_leaving => {
                Some(holder.term)
            }
            _ => None,
        }
    }

    /// The other engine that leads, as far as is known.
    pub fn leader(&self) -> Option<&Holder> {
        self.leader.as_ref()
    }

    /// True once it has left, after [`Election::leave`], and no answer is awaited.
    pub fn has_left(&self) -> bool {
        self.state == State::Left && self.open.is_none()
    }

    /// Time of the next request, or of the end of its lease; `None` while an answer is awaited that
    /// changes nothing by itself.
    pub fn poll_timeout(&self) -> Option<u64> {
        let until = match &self.state {
            State::Leading { until, .. } => Some(*until),
            _ => None,
        };
        let due = (self.open.is_none() && self.state != State::Left).then_some(self.due);
        due.into_iter().chain(until).min()
    }

    /// The store says that another has taken its place.
    pub fn lost(&mut self, now: u64) {
        if matches!(self.state, State::Leading { .. }) {
            self.stand_by(now);
        }
    }

    /// A switch has an engine with this term: the next one is greater. The present one, if it is not,
    /// is given up for it.
    pub fn exceed(&mut self, now: u64, term: u64) {
        self.settings.least_term = self.settings.least_term.max(term.saturating_add(1));
        if matches!(&self.state, State::Leading { holder, .. } if holder.term <= term) {
            self.stand_by(now);
        }
    }

    /// Stops to lead, and takes nobody's place any more.
    pub fn leave(&mut self, now: u64) {
        self.is_leaving = true;
        if !matches!(self.state, State::Leading { .. }) {
            self.state = State::Left;
        }
        self.due = now;
    }

    fn stand_by(&mut self, now: u64) {
        self.state = State::Standby { seen: None };
        self.due = now;
    }

    /// The request that is due, if no answer is awaited.
    pub fn poll_request(&mut self, now: u64) -> Option<Request> {
        if matches!(&self.state, State::Leading { until, .. } if now >= *until) {
            self.stand_by(now);
        }
        if self.open.is_some() || now < self.due {
            return None;
        }
        if let State::Standby {
            seen: Some((revision, since)),
        } = self.state
            && now >= since.saturating_add(self.settings.detection_us)
        {
            self.state = State::Candidate { revision };
        }
        let request = match &self.state {
            State::Standby { .. } => Request::Look,
            State::Candidate { revision } => Request::Take {
                revision: *revision,
                holder: Holder {
                    term: (self.greatest.saturating_add(1)).max(self.settings.least_term),
                    nonce: self.settings.nonce,
                    left: false,
                    address: self.settings.address.clone(),
                },
            },
            State::Leading { holder, .. } if self.is_leaving => Request::Leave {
                holder: holder.clone(),
            },
            State::Leading { holder, .. } => Request::Renew {
                holder: holder.clone(),
            },
            State::Left => return None,
        };
        if self.is_leaving {
            // The store may take it or not: this one acts no more.
            self.state = State::Left;
        }
        self.open = Some((request.clone(), now));
        Some(request)
    }

    /// Takes the answer to the request that is open.
    pub fn handle_answer(&mut self, now: u64, answer: Answer) {
        let Some((request, sent)) = self.open.take() else {
            return;
        };
        if self.state == State::Left {
            return;
        }
        let detection = self.settings.detection_us;
        let pause = now + detection / LOOKS;
        match (request, answer) {
            (
                Request::Look,
                Answer::Seen {
                    revision,
                    holder,
                    term,
                },
            ) => {
                self.greatest = self.greatest.max(term);
                self.see(now, revision, holder);
            }
            (Request::Take { holder, .. }, Answer::Done) => {
                self.greatest = self.greatest.max(holder.term);
                let until = sent + self.lease();
                if now < until && holder.term >= self.settings.least_term {
                    self.leader = None;
                    self.state = State::Leading { holder, until };
                    self.due = sent + detection / RENEWALS;
                } else {
                    self.stand_by(now);
                }
            }
            (Request::Take { .. }, answer) => {
                self.stand_by(now);
                if answer == Answer::Failed {
                    self.due = pause;
                }
            }
            (Request::Renew { holder: renewed }, answer) => {
                let lease = self.lease();
                if let State::Leading { holder, until } = &mut self.state
                    && *holder == renewed
                {
                    match answer {
                        // A driver that saw the lease end has ended its work under this term.
                        Answer::Done if now >= *until => self.stand_by(now),
                        Answer::Done => {
                            *until = sent + lease;
                            self.due = now.max(sent + detection / RENEWALS);
                        }
                        Answer::Failed => self.due = now + detection / (4 * RENEWALS),
                        Answer::Refused | Answer::Seen { .. } => self.stand_by(now),
                    }
                }
            }
            (Request::Look | Request::Leave { .. }, _) => self.due = pause,
        }
    }

    fn lease(&self) -> u64 {
        self.settings.detection_us - self.settings.detection_us.div_ceil(DRIFT)
    }

    /// Takes what a look saw.
    fn see(&mut self, now: u64, revision: u64, holder: Option<Holder>) {
        let State::Standby { seen } = &self.state else {
            return;
        };
        let nonce = self.settings.nonce;
        // Its own place, which it gave up or does not know to have, is free too: only it can act there.
        let other = holder.filter(|holder| !holder.left && holder.nonce != nonce);
        if other.is_none() {
            self.leader = None;
            self.state = State::Candidate { revision };
            self.due = now;
            return;
        }
        self.leader = other;
        let since = match seen {
            Some((known, since)) if *known == revision => *since,
            _ => now,
        };
        self.state = State::Standby {
            seen: Some((revision, since)),
        };
        let detection = self.settings.detection_us;
        self.due = (now + detection / LOOKS).min(since + detection);
    }
}

#[cfg(test)]
mod tests;
