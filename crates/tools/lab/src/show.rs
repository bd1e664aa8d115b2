//! The line that shows how a demonstration goes.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

const PLAIN_EVERY: Duration = Duration::from_secs(2);

/// One line that changes on a terminal, a line every two seconds elsewhere; both on
/// standard error.
pub(crate) struct Show {
    bar: Option<ProgressBar>,
    last: Option<Instant>,
}

impl Show {
    pub(crate) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, last: None }
    }

    /// Shows the state of the demonstration.
    pub(crate) fn status(&mut self, text: String) {
        match &self.bar {
            Some(bar) => {
                bar.set_message(text);
                bar.tick();
            }
            None => {
                if self.last.is_none_or(|last| last.elapsed() >= PLAIN_EVERY) {
                    self.last = Some(Instant::now());
                    eprintln!("{text}");
                }
            }
        }
    }

    /// Something that happened, which stays to be read.
    pub(crate) fn event(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }

    pub(crate) fn finish(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Show {
    fn drop(&mut self) {
        self.finish();
    }
}
