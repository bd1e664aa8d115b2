//! Control of several workers on real interfaces: what changes, changes for the frames of all of
//! them before the change is told.

use crate::namespace::{Host, stay, try_in_namespace};
use crate::spread::tunnelled;
use crate::swap_engine::{
    CPU_PORT, FOR_CONTROLLER, FOR_GROUP, GROUP, KEY, KIND, MARK, SwapEngine, UDP_FROM,
};
use crate::workers::{FLOWS, assert_whole, datagram, exchange, read, two_links};
use crate::{frame, ports};
use stateplane_host::ports::Access;
use stateplane_host::switch::{
    Attachment, Beside, ControlPlane, ControlReport, Placing, Remote, RunOptions, SwitchFile,
    SwitchReport, remote, run_workers,
};
use stateplane_runtime::Digest;
use stateplane_switch::{Fellows, Replica, Switch};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

type Work = Box<dyn FnOnce(&mut Switch<SwapEngine>, &mut dyn Fellows<SwapEngine>) + Send>;

/// A control plane that does what a test sends, and passes on what it gets.
struct Controller {
    work: Receiver<Work>,
    woken: UnixStream,
    next: Option<Work>,
    frames: Sender<Vec<u8>>,
    /// True while it always has more to do.
    busy: Arc<AtomicBool>,
}

impl ControlPlane<SwapEngine> for Controller {
    fn descriptor(&self) -> RawFd {
        self.woken.as_raw_fd()
    }

    fn packet_in(&mut self, frame: &[u8]) {
        self.frames.send(frame.to_vec()).unwrap();
    }

    fn digest(&mut self, _: &Digest, _: u64) {}

    fn due(&mut self, _: u64) -> Option<u64> {
        let mut bytes = [0; 64];
        while matches!(self.woken.read(&mut bytes), Ok(count) if count > 0) {}
        self.next = self.next.take().or_else(|| self.work.try_recv().ok());
        let is_due = self.next.is_some() || self.busy.load(Ordering::Relaxed);
        is_due.then_some(0)
    }

    fn serve(
        &mut self,
        switch: &mut Switch<SwapEngine>,
        fellows: &mut dyn Fellows<SwapEngine>,
        _: u64,
    ) -> Option<u64> {
        if let Some(work) = self.next.take() {
            work(switch, fellows);
        }
        if !self.busy.load(Ordering::Relaxed) {
            return None;
        }
        // As long as controllers may keep packets waiting.
        std::thread::sleep(Duration::from_micros(200));
        Some(0)
    }

    fn report(&self) -> ControlReport {
        ControlReport::default()
    }
}

/// A test's end of a [`Controller`], and of the switch.
struct Control {
    remote: Remote<SwapEngine>,
    work: Sender<Work>,
    wake: UnixStream,
    frames: Receiver<Vec<u8>>,
    busy: Arc<AtomicBool>,
}

impl Control {
    /// Lets the control plane do something, and waits until it is done.
    fn work(
        &self,
        work: impl FnOnce(&mut Switch<SwapEngine>, &mut dyn Fellows<SwapEngine>) + Send + 'static,
    ) {
        let (done, is_done) = channel();
        let work: Work = Box::new(move |switch, fellows| {
            work(switch, fellows);
            // Frames wait until the other workers have followed.
            done.send(()).unwrap();
        });
        self.work.send(work).unwrap();
        (&self.wake).write_all(&[1]).unwrap();
        is_done.recv_timeout(Duration::from_secs(10)).unwrap();
    }
}

/// Runs `scenario` while a switch with two workers and a control plane runs.
fn while_controlled(scenario: impl FnOnce(&Control) + Send) -> SwitchReport {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    let (tell, is_ready) = channel();
    let (work, given) = channel();
    let (seen, frames) = channel();
    let (woken, wake) = UnixStream::pair().unwrap();
    woken.set_nonblocking(true).unwrap();
    let (remote, calls) = remote().unwrap();
    let busy = Arc::new(AtomicBool::new(false));
    let control = Control {
        remote,
        work,
        wake,
        frames,
        busy: busy.clone(),
    };
    let mut controller = Some(Controller {
        work: given,
        woken,
        next: None,
        frames: seen,
        busy,
    });
    std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            let _stop = Stop(stop);
            let patience = Duration::from_secs(10);
            is_ready.recv_timeout(patience).expect("it is ready");
            stay();
            scenario(&control);
        });
        let options = RunOptions {
            stop,
            ready: &mut |_| tell.send(()).unwrap(),
            status: None,
            notify: &mut |_, _, _| {},
            patience: None,
            sealing: None,
            flows: None,
        };
        let mut make = |_: &Switch<SwapEngine>| {
            let controller = controller.take().ok_or("it is made once")?;
            Ok(Box::new(controller) as Box<dyn ControlPlane<SwapEngine>>)
        };
        let beside = Beside {
            control: Some(Attachment {
                cpu_port: Some(CPU_PORT),
                make: &mut make,
            }),
            remote: Some(calls),
            placing: Placing::default(),
        };
        let (engine, ports) = (SwapEngine::default(), ports(Access::Packet));
        let file = SwitchFile::default();
        run_workers(engine, 2, &file, &ports, options, beside).unwrap()
    })
}

fn assert_all_work(report: &SwitchReport) {
    let received = report.workers.iter().map(|worker| worker.received);
    assert!(received.min() > Some(0), "{report:?}");
}

/// After a replacement is told, no worker forwards by the program before, and none loses a frame.
#[test]
fn frames_of_all_workers_run_a_new_program_once_it_is_told() {
    try_in_namespace(|| {
        two_links(2);
        let report = while_controlled(|control| {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            let mut next = 0;
            for mark in 1..=20 {
                let mut send = |frames: u32| {
                    for number in next..next + frames {
                        (0..FLOWS).for_each(|flow| left.send(&datagram(flow, false, number)));
                    }
                    next += frames;
                };
                // Some are on their way meanwhile.
                send(2);
                let replaced = control
                    .remote
                    .call(move |server| server.replace_program(SwapEngine::marking(mark)));
                assert!(replaced.flatten().is_some());
                send(2);
                for _ in 0..4 * FLOWS {
                    let came = right.expect();
                    let (flow, number) = read(&came);
                    let is_late = number + 2 >= next;
                    let marks = if is_late {
                        mark..=mark
                    } else {
                        mark - 1..=mark
                    };
                    assert!(marks.contains(&came[MARK]), "flow {flow}: {number}");
                }
            }
        });
        assert_all_work(&report);
        assert!(report.drops.is_empty(), "{report:?}");
    });
}

#[test]
fn groups_reach_all_workers_and_frames_of_all_come_to_the_control_plane() {
    try_in_namespace(|| {
        two_links(2);
        let report = while_controlled(|control| {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            let marked = |flow: u16, kind: [u8; 2]| {
                let mut frame = datagram(flow, false, 0);
                frame[KIND..KIND + 2].copy_from_slice(&kind);
                frame
            };
            for port in [1, 0, 1, 0] {
                control.work(move |switch, _| {
                    let replicas = vec![Replica { port, rid: 0 }];
                    switch.set_multicast_group(GROUP, replicas).unwrap();
                });
                let to = if port == 1 { &right } else { &left };
                for flow in 0..FLOWS {
                    left.send(&marked(flow, FOR_GROUP));
                    assert_eq!(read(&to.expect()).0, flow, "by port {port}");
                }
            }
            for flow in 0..FLOWS {
                left.send(&marked(flow, FOR_CONTROLLER));
                let came = control.frames.recv_timeout(Duration::from_secs(10));
                assert_eq!(read(&came.unwrap()).0, flow);
            }
            // A packet of the control plane leaves by an interface.
            control.work(|switch, _| switch.handle_frame(0, 1, &frame(60, 7)));
            assert_eq!(left.expect(), frame(60, 7));
        });
        assert_all_work(&report);
        let numbers: Vec<_> = report.ports.iter().map(|port| port.port).collect();
        assert_eq!(numbers, [0, 1], "the control plane's port has no interface");
    });
}

/// The kinds of frames that go by key are those of the program that runs.
#[test]
fn a_new_program_s_frames_go_by_its_keys() {
    try_in_namespace(|| {
        two_links(2);
        while_controlled(|control| {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            let mut before = 0;
            let mut handed_over = || {
                for number in 0..64 {
                    left.send(&tunnelled(false, number));
                }
                (0..64).for_each(|_| drop(right.expect()));
                let report = control.remote.call(|server| server.report()).unwrap();
                let sum: u64 = report.workers.iter().map(|it| it.handed_over).sum();
                sum - std::mem::replace(&mut before, sum)
            };
            assert_eq!(handed_over(), 0);
            let replace = |engine: fn() -> SwapEngine| {
                let replaced = control
                    .remote
                    .call(move |server| server.replace_program(engine()));
                assert!(replaced.flatten().is_some());
            };
            replace(SwapEngine::keyed);
            assert_ne!(handed_over(), 0);
            replace(SwapEngine::default);
            assert_eq!(handed_over(), 0);
            // As a controller does.
            control.work(|switch, _| drop(switch.replace_engine(SwapEngine::keyed())));
            assert_ne!(handed_over(), 0);
            control.work(|_, _| {});
            assert_ne!(handed_over(), 0, "another change leaves it as it is");
            // Keys depend on entries too, and are tried again when these may have changed.
            let engine = SwapEngine::keyed();
            let key_at = engine.key_at.clone();
            key_at.store(UDP_FROM, Ordering::Relaxed);
            control.work(move |switch, _| drop(switch.replace_engine(engine)));
            handed_over();
            key_at.store(KEY + 2, Ordering::Relaxed);
            let left_to_the_flow = handed_over();
            control.work(|_, _| {});
            let by_key = handed_over();
            assert_eq!((left_to_the_flow, by_key > 0), (0, true));
        });
    });
}

/// Stops that follow each other leave workers time for frames.
#[test]
fn frames_pass_while_the_control_plane_works_without_pause() {
    try_in_namespace(|| {
        two_links(2);
        let report = while_controlled(|control| {
            let (left, right) = (Host::open("h0"), Host::open("h1"));
            control.busy.store(true, Ordering::Relaxed);
            control.work(|_, _| {});
            exchange(&left, &right);
            control.busy.store(false, Ordering::Relaxed);
        });
        assert_whole(&report);
        assert_all_work(&report);
    });
}
