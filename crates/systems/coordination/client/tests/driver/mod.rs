//! Clients with recipes, driven in virtual time.

use stateplane_coordination::{
    Agent, Barrier, Event, LeaderLatch, Membership, Mutex, ReadWriteLock, Reaper, Semaphore,
    Session, Transaction, Watch,
};

use crate::chain::Service;

/// An agent and all that stands on it.
pub struct Client {
    pub agent: Agent,
    pub session: Option<Session>,
    pub mutexes: Vec<Mutex>,
    pub semaphores: Vec<Semaphore>,
    pub locks: Vec<ReadWriteLock>,
    pub memberships: Vec<Membership>,
    pub barriers: Vec<Barrier>,
    pub latches: Vec<LeaderLatch>,
    pub watches: Vec<Watch>,
    pub transactions: Vec<Transaction>,
    pub reaper: Option<Reaper>,
    /// Events that the agent told.
    pub told: Vec<Event>,
}

impl Client {
    pub fn new(agent: Agent) -> Client {
        Client {
            agent,
            session: None,
            mutexes: Vec::new(),
            semaphores: Vec::new(),
            locks: Vec::new(),
            memberships: Vec::new(),
            barriers: Vec::new(),
            latches: Vec::new(),
            watches: Vec::new(),
            transactions: Vec::new(),
            reaper: None,
            told: Vec::new(),
        }
    }

    /// All that is due is done, and all events go to all recipes.
    pub fn step(&mut self, service: &mut Service) {
        let now = service.now;
        self.agent.handle_timeout(now);
        let agent = &mut self.agent;
        macro_rules! all {
            ($($machines:ident)*, $machine:ident => $call:expr) => {
                $(for $machine in self.$machines.iter_mut() {
                    $call;
                })*
            };
        }
        all!(session mutexes semaphores locks memberships barriers latches watches transactions reaper,
            one => one.handle_timeout(now, agent));
        for event in service.events(agent) {
            all!(session mutexes semaphores locks memberships barriers latches transactions reaper,
                one => one.handle_event(now, agent, &event));
            for watch in &mut self.watches {
                watch.handle_event(now, &event);
            }
            self.told.push(event);
        }
    }
}

/// Lets `span` µs pass for all clients, in steps of 1 ms.
pub fn run(service: &mut Service, clients: &mut [Client], span: u64) {
    let end = service.now + span;
    while service.now < end {
        service.now += 1_000;
        for client in clients.iter_mut() {
            client.step(service);
        }
    }
}
