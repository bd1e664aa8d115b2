//! Sources, models and pictures together, until somebody stops them.

use crate::draw::{Paint, draw};
use crate::error::TopError;
use crate::json::{history, line};
use crate::look::{Look, Source};
use crate::model::{Model, Press};
use crate::web::{Data, Server};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::Duration;

/// Longest time until a key, or a request to stop, is seen.
const WAIT: Duration = Duration::from_millis(50);

/// Looks of a source on a thread of its own, which ends with the receiver or the first error.
fn follow(
    mut source: Box<dyn Source>,
    interval: Duration,
) -> Result<Receiver<Result<Look, TopError>>, TopError> {
    let (sender, looks) = sync_channel(1);
    let run = move || {
        loop {
            let look = source.next(interval);
            let is_last = look.is_err();
            if sender.send(look).is_err() || is_last {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("source".to_owned());
    thread.spawn(run)?;
    Ok(looks)
}

/// The error of a source whose thread has panicked.
fn ended() -> TopError {
    TopError::Terminal(io::Error::other("the thread that looks has ended"))
}

/// The next look; `None` when it is to stop.
fn receive(
    looks: &Receiver<Result<Look, TopError>>,
    stop: &AtomicBool,
) -> Option<Result<Look, TopError>> {
    while !stop.load(Ordering::Relaxed) {
        match looks.recv_timeout(WAIT) {
            Ok(look) => return Some(look),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Some(Err(ended())),
        }
    }
    None
}

/// Looks every `interval` until the source's clock has gone on by `after`.
///
/// # Errors
///
/// [`TopError`] of the source.
pub fn once(
    source: &mut dyn Source,
    model: &mut Model,
    interval: Duration,
    after: Duration,
) -> Result<(), TopError> {
    let end = after.as_micros() as u64;
    loop {
        model.take(source.next(interval)?);
        if model.at_us >= end {
            return Ok(());
        }
    }
}

/// Writes each look as a line of JSON, at most `count` of them, until `stop` is set or nobody reads.
///
/// # Errors
///
/// [`TopError`] of the source, or of `out`.
pub fn lines(
    source: Box<dyn Source>,
    mut model: Model,
    (interval, count): (Duration, Option<u64>),
    stop: &AtomicBool,
    out: &mut dyn Write,
) -> Result<(), TopError> {
    let looks = follow(source, interval)?;
    let mut left = count.unwrap_or(u64::MAX);
    while left > 0
        && let Some(look) = receive(&looks, stop)
    {
        model.take(look?);
        left -= 1;
        let written = writeln!(out, "{}", line(&model)).and_then(|()| out.flush());
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}

/// Serves a page at `address` until `stop` is set; writes its URL to `out`.
///
/// # Errors
///
/// [`TopError`] of the source, of the address, or of `out`.
pub fn web(
    source: Box<dyn Source>,
    mut model: Model,
    (interval, address): (Duration, SocketAddr),
    stop: &AtomicBool,
    out: &mut dyn Write,
) -> Result<(), TopError> {
    let data = Data::default();
    data.set(history(&model).to_string());
    let server = Server::start(address, &data)?;
    writeln!(out, "http://{}/", server.address())?;
    out.flush()?;
    let looks = follow(source, interval)?;
    while let Some(look) = receive(&looks, stop) {
        model.take(look?);
        data.set(history(&model).to_string());
    }
    Ok(())
}

/// Gives the terminal back, also when a panic or an error ends the picture.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
    }
}

/// Shows the model on the terminal until a key, or `stop`, ends it.
///
/// # Errors
///
/// [`TopError`] of the source, or of the terminal.
pub fn screen(
    source: Box<dyn Source>,
    mut model: Model,
    interval: Duration,
    stop: &AtomicBool,
    paint: Paint,
) -> Result<(), TopError> {
    let looks = follow(source, interval)?;
    let _restored = Restored;
    let mut terminal = ratatui::try_init()?;
    let mut has_changed = true;
    while !stop.load(Ordering::Relaxed) {
        match looks.try_recv() {
            Ok(look) => {
                model.take(look?);
                has_changed = true;
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Err(ended()),
        }
        if has_changed {
            terminal.draw(|frame| draw(frame, &model, paint))?;
            has_changed = false;
        }
        if event::poll(WAIT.min(interval))? {
            has_changed = true;
            if let Some(press) = press(&event::read()?)
                && !model.press(press)
            {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Meaning of a key; `None` if it has none.
fn press(event: &Event) -> Option<Press> {
    let Event::Key(key) = event else {
        return None;
    };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c' | 'd') if is_control => Some(Press::Quit),
        KeyCode::Char('q' | 'Q') => Some(Press::Quit),
        KeyCode::Char('p' | ' ') => Some(Press::Pause),
        KeyCode::Char('?' | 'h') => Some(Press::Help),
        KeyCode::Tab => Some(Press::NextGroup),
        KeyCode::BackTab => Some(Press::PreviousGroup),
        KeyCode::Right => Some(Press::Plot(1)),
        KeyCode::Left => Some(Press::Plot(7)),
        KeyCode::Up | KeyCode::Down => Some(Press::Plot(4)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::Title;
    use ratatui::crossterm::event::KeyEvent;

    /// A source that fails at its fourth look.
    struct Four(u64);

    impl Source for Four {
        fn title(&self) -> Title {
            Title::default()
        }

        fn next(&mut self, interval: Duration) -> Result<Look, TopError> {
            self.0 += 1;
            if self.0 == 4 {
                return Err(TopError::Program("it is over".to_owned()));
            }
            Ok(Look {
                at_us: self.0 * interval.as_micros() as u64,
                ..Look::default()
            })
        }
    }

    fn printed(count: Option<u64>, stop: bool) -> (String, Result<(), TopError>) {
        let mut out = Vec::new();
        let model = Model::new(Title::default());
        let limits = (Duration::from_millis(1), count);
        let stop = AtomicBool::new(stop);
        let ended = lines(Box::new(Four(0)), model, limits, &stop, &mut out);
        (String::from_utf8(out).expect("text"), ended)
    }

    #[test]
    fn lines_end_with_their_number_an_error_or_a_stop() {
        let (text, ended) = printed(Some(2), false);
        assert!(ended.is_ok() && text.lines().count() == 2, "{text}");
        let (text, ended) = printed(None, false);
        assert!(ended.is_err() && text.lines().count() == 3, "{text}");
        assert!(text.lines().all(|line| line.starts_with('{')), "{text}");
        let (text, ended) = printed(None, true);
        assert!(ended.is_ok() && text.is_empty(), "{text}");
    }

    #[test]
    fn once_ends_when_the_clock_of_the_source_has_gone_on() {
        let mut model = Model::new(Title::default());
        let (interval, after) = (Duration::from_millis(10), Duration::from_millis(15));
        once(&mut Four(0), &mut model, interval, after).expect("two looks");
        assert_eq!(model.at_us, 20_000);
        let after = Duration::from_secs(1);
        assert!(once(&mut Four(0), &mut model, interval, after).is_err());
    }

    #[test]
    fn keys_mean_what_the_help_says() {
        let key = |code| press(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
        assert_eq!(key(KeyCode::Char('q')), Some(Press::Quit));
        assert_eq!(key(KeyCode::Char('p')), Some(Press::Pause));
        assert_eq!(key(KeyCode::Char('?')), Some(Press::Help));
        assert_eq!(key(KeyCode::Tab), Some(Press::NextGroup));
        assert_eq!(key(KeyCode::Left), Some(Press::Plot(7)));
        assert_eq!(key(KeyCode::Char('c')), None);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(press(&Event::Key(interrupt)), Some(Press::Quit));
        assert_eq!(press(&Event::FocusLost), None);
    }
}
