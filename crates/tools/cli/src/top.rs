//! `stateplane top`: heavy hitters, bounds and losses, live.

use crate::exit::{CommandError, Failure};
use crate::signal::stop_flag;
use crate::sketch::{ShapeArguments, family, keys_of, number};
use crate::text_file;
use crate::view::EngineArguments;
use clap::Args;
use stateplane_sketch::Family;
use stateplane_top::{
    FLOWS, Local, Model, Paint, Reach, Remote, Settings, Sketched, Source, TopError, Traffic,
};
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The capture that is replayed unless another is named.
const TRACE: &str = "../shared/traces/mixed-two-way-snap96.pcap";

/// Watch heavy hitters with their error bars, and the bounds, age, ring and losses of their view,
/// while traffic runs.
///
/// In this process run: a switch whose Count-Min sketches have a view, its engine, a link of a
/// given budget between them, and traffic. That is a capture in a loop, by default one of
/// ../shared/traces; where that is absent, or with --generate, it is drawn by Zipf's law. With
/// --engine an engine that runs is watched instead: greatest locations, or with --group and others
/// heavy hitters of a sketch, as `stateplane sketch` finds them. docs/top.md explains the picture.
///
/// Keys: q quits, p stands still, tab and arrows choose register and plot, ? explains. Without a
/// terminal one picture is printed, as with --once.
#[derive(Args)]
pub struct TopArguments {
    #[command(flatten)]
    local: LocalArguments,
    #[command(flatten)]
    remote: RemoteArguments,
    #[command(flatten)]
    output: OutputArguments,
    /// Threshold of heavy hitters; a 200th of what was counted unless set
    #[arg(long, value_name = "N")]
    threshold: Option<u64>,
}

#[derive(Args)]
struct LocalArguments {
    /// Replay this capture (pcap, pcapng) in a loop
    #[arg(long, value_name = "FILE", conflicts_with_all = ["engines", "generate"])]
    trace: Option<PathBuf>,
    /// Draw traffic by Zipf's law
    #[arg(long, conflicts_with = "engines")]
    generate: bool,
    /// Flows of drawn traffic
    #[arg(long, value_name = "N", default_value_t = FLOWS.0, conflicts_with = "engines",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(FLOWS.1)))]
    flows: u32,
    /// Determines drawn traffic, and what the link loses
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        conflicts_with = "engines"
    )]
    seed: u64,
    /// Packets a second
    #[arg(long, value_name = "N", default_value_t = 100_000, conflicts_with = "engines",
        value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rate: u32,
    /// Mb/s that each register may send to the engine, under loss down to half of them; fewer let t
    /// and E grow
    #[arg(long, value_name = "MBPS", default_value_t = 40, conflicts_with = "engines",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    budget: u32,
    /// Percent of datagrams that the link between switch and engine loses
    #[arg(long, value_name = "PERCENT", default_value = "0", conflicts_with = "engines",
        value_parser = permille)]
    loss: u32,
}

#[derive(Args)]
struct RemoteArguments {
    /// Watch the engine at this address, `rpc` in its file; of engines that stand by for each other
    /// all, and the one that leads is asked
    #[arg(long = "engine", value_name = "ADDRESS:PORT", value_delimiter = ',')]
    engines: Vec<String>,
    /// Seconds until a request to the engine is given up
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 5.0,
        requires = "engines"
    )]
    timeout: f64,
    /// Groups of the engine that hold a sketch, in the order of docs/sketches.md
    #[arg(long = "group", value_name = "GROUP", requires = "engines")]
    groups: Vec<String>,
    /// Family of the sketch: count-min, hashpipe, elastic-sketch, flow-radar, univmon, sketch-learn
    #[arg(long, value_parser = family, default_value = "count-min", requires = "groups")]
    family: Family,
    /// Its rows, stages, tables, levels or bits; those of the programs in `apps` unless set
    #[arg(long, requires = "groups")]
    rows: Option<u32>,
    /// Columns of a row are 2 to this
    #[arg(long, value_name = "BITS", default_value_t = 16, requires = "groups")]
    column_bits: u32,
    /// Places of the second part are 2 to this
    #[arg(long, value_name = "BITS", default_value_t = 0, requires = "groups")]
    part_bits: u32,
    /// SKETCH_SEED of the program
    #[arg(long, value_parser = number, default_value = "0x5374617465706c61", requires = "groups")]
    sketch_seed: u64,
    /// Number of the sketch's first hash function
    #[arg(long, default_value_t = 0, requires = "groups")]
    function: u32,
    /// A file with flows to look for, one a line, besides those that the sketch names itself
    #[arg(long, value_name = "FILE", requires = "groups")]
    flows_from: Option<PathBuf>,
}

#[derive(Args)]
struct OutputArguments {
    /// Between two looks, as 500ms or 2s
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = interval)]
    interval: Duration,
    /// Print one picture as text; a switch in this process then runs as fast as it can
    #[arg(long)]
    once: bool,
    /// Time before that picture, by the clock of the switch
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    after: Duration,
    /// Columns and lines of that picture
    #[arg(long, value_name = "COLUMNSxLINES", default_value = "80x24", value_parser = size)]
    size: (u16, u16),
    /// Write that picture to this file, as SVG
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "web"])]
    svg: Option<PathBuf>,
    /// Print JSON, one object a line for each look; with --once the last one alone
    #[arg(long, conflicts_with = "web")]
    json: bool,
    /// Stop after so many lines of JSON
    #[arg(long, value_name = "N", requires = "json", conflicts_with = "once")]
    count: Option<u64>,
    /// Serve a page with the picture at this address, by default at 127.0.0.1 and a free port, and
    /// print its URL
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, conflicts_with = "once",
        default_missing_value = "127.0.0.1:0")]
    web: Option<SocketAddr>,
}

fn time(text: &str) -> Result<Duration, String> {
    let (digits, unit) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1e-3),
        None => (text.strip_suffix('s').unwrap_or_default(), 1.0),
    };
    let seconds = digits.trim().parse().map(|number: f64| number * unit);
    let seconds = seconds.ok().filter(|it| (0.0..=86_400.0).contains(it));
    let seconds = seconds.ok_or("a time of at most a day with its unit, as 500ms or 2s")?;
    Ok(Duration::from_secs_f64(seconds))
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = time(text)?;
    let range = Duration::from_millis(10)..=Duration::from_secs(60);
    let is_right = range.contains(&interval);
    is_right
        .then_some(interval)
        .ok_or_else(|| "between 10ms and 60s".to_owned())
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parts = text.split_once('x');
    let number = |text: &str| text.parse::<u16>().ok();
    let size = parts.and_then(|(columns, lines)| Some((number(columns)?, number(lines)?)));
    let right =
        size.filter(|(columns, lines)| (60..=500).contains(columns) && (16..=200).contains(lines));
    right.ok_or_else(|| "from 60x16 to 500x200".to_owned())
}

fn permille(text: &str) -> Result<u32, String> {
    let percent: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    let percent = percent.filter(|it| (0.0..=50.0).contains(it));
    let percent = percent.ok_or("percent between 0 and 50")?;
    Ok((percent * 10.0).round() as u32)
}

fn failed(error: TopError) -> CommandError {
    let of_input = |code: &str| code == "SYNC020" || code.starts_with("SKETCH");
    let failure = match &error {
        TopError::Capture(_) => Failure::Input,
        TopError::Engine {
            code: Some(code), ..
        } if of_input(code) => Failure::Input,
        _ => Failure::System,
    };
    match error.code() {
        Some(code) => CommandError::coded(failure, code, &error),
        None => CommandError::new(failure, &error),
    }
}

/// The reason for which an engine is not reached.
fn unreached(error: &CommandError) -> TopError {
    let text = error.message();
    let coded = text.strip_prefix("error[");
    let (code, message) = match coded.and_then(|rest| rest.split_once("]: ")) {
        Some((code, message)) => (Some(code.to_owned()), message),
        None => (None, text.strip_prefix("error: ").unwrap_or(text)),
    };
    TopError::Engine {
        code,
        message: message.to_owned(),
    }
}

/// Runs the command.
pub fn run(arguments: &TopArguments) -> Result<(), CommandError> {
    let output = &arguments.output;
    let shows = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let goes_on = output.json || output.web.is_some() || shows;
    let once = output.once || output.svg.is_some() || !goes_on;
    let mut source = arguments.source(once)?;
    let mut model = Model::new(source.title());
    if once {
        let ended = stateplane_top::once(&mut *source, &mut model, output.interval, output.after);
        ended.map_err(failed)?;
        return output.print(&model);
    }
    let stop = stop_flag()?;
    let mut out = std::io::stdout();
    let ended = if output.json {
        let limits = (output.interval, output.count);
        stateplane_top::lines(source, model, limits, &stop, &mut out)
    } else if let Some(address) = output.web {
        let settings = (output.interval, address);
        stateplane_top::web(source, model, settings, &stop, &mut out)
    } else {
        let no_colours = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
        let colours = !no_colours;
        stateplane_top::screen(source, model, output.interval, &stop, Paint { colours })
    };
    ended.map_err(failed)
}

impl OutputArguments {
    /// One picture.
    fn print(&self, model: &Model) -> Result<(), CommandError> {
        if self.json {
            println!("{}", stateplane_top::line(model));
            return Ok(());
        }
        if let Some(path) = &self.svg {
            let picture = stateplane_top::painted(model, self.size, Paint { colours: true });
            return text_file::write(path, stateplane_top::svg(&picture));
        }
        let picture = stateplane_top::painted(model, self.size, Paint { colours: false });
        print!("{}", stateplane_top::text(&picture));
        Ok(())
    }
}

impl TopArguments {
    fn source(&self, once: bool) -> Result<Box<dyn Source>, CommandError> {
        if self.remote.engines.is_empty() {
            let local = self.local.source(self.threshold, !once)?;
            return Ok(Box::new(local));
        }
        Ok(Box::new(self.remote.source(self.threshold)?))
    }
}

impl LocalArguments {
    fn source(&self, threshold: Option<u64>, is_paced: bool) -> Result<Local, CommandError> {
        let captured = |path: &Path| Traffic::captured(path).map_err(|error| failed(error.into()));
        let usual = Path::new(TRACE);
        let traffic = match &self.trace {
            Some(path) => captured(path)?,
            None if !self.generate && usual.is_file() => captured(usual)?,
            None => Traffic::drawn(self.seed, self.flows),
        };
        let settings = Settings {
            rate: self.rate,
            budget_mbps: self.budget,
            loss_permille: self.loss,
            seed: self.seed,
            threshold,
            is_paced,
        };
        Local::new(settings, traffic).map_err(failed)
    }
}

impl RemoteArguments {
    fn source(&self, threshold: Option<u64>) -> Result<Remote, CommandError> {
        if !(0.001..=600.0).contains(&self.timeout) {
            let message = "--timeout is between 0.001 and 600 seconds";
            return Err(CommandError::new(Failure::Input, message));
        }
        let sketched = self.sketched()?;
        let engine = EngineArguments {
            addresses: self.engines.clone(),
            timeout: self.timeout,
            json: false,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| CommandError::new(Failure::System, error))?;
        let shown = (self.engines.join(","), engine.patience_us());
        let reach: Reach = Box::new(move |runtime: &tokio::runtime::Runtime| {
            let client = runtime.block_on(engine.client());
            client.map_err(|error| unreached(&error))
        });
        Remote::new(runtime, reach, shown, sketched, threshold).map_err(failed)
    }

    fn sketched(&self) -> Result<Option<Sketched>, CommandError> {
        if self.groups.is_empty() {
            return Ok(None);
        }
        let shape = ShapeArguments {
            family: self.family,
            groups: self.groups.clone(),
            rows: self.rows,
            column_bits: self.column_bits,
            part_bits: self.part_bits,
            seed: self.sketch_seed,
            function: self.function,
        };
        let shape = shape.checked()?;
        let keys = self.flows_from.as_deref().map(keys_of).transpose()?;
        Ok(Some(Sketched {
            shape,
            groups: self.groups.clone(),
            keys: keys.unwrap_or_default(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_sizes_an_x() {
        assert_eq!(time("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(time("0.5s"), Ok(Duration::from_millis(500)));
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "2", "s", "ms", "-1s", "1h", "nans", "90000s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert!(interval("9ms").is_err() && interval("61s").is_err());
        assert_eq!(size("120x40"), Ok((120, 40)));
        for wrong in ["120", "59x16", "60x15", "x", "501x20", "-1x20"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(permille("1.5"), Ok(15));
        assert_eq!(permille("40 %"), Ok(400));
        assert!(permille("51").is_err() && permille("few").is_err());
    }
}
