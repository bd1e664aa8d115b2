//! The `stateplane` command: stateful P4 programs that survive their switch.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod app;
mod check;
mod closed_pipe;
mod command_socket;
mod compile;
mod control;
mod controller;
mod engine;
mod eval;
mod exit;
mod explain;
mod fmt;
mod hazards;
mod init;
mod ir_file;
mod kv;
mod lab;
mod log;
mod manual;
mod metrics;
mod multicast;
mod operator;
mod p4runtime;
mod plan;
mod program;
mod protect;
mod reload;
mod run;
mod signal;
mod sim;
mod sketch;
mod store;
mod sync;
mod sync_engine;
mod test;
mod text_file;
mod top;
mod trace;
mod version;
mod view;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Runs stateful P4-16 programs and keeps their state when a switch fails.
#[derive(Parser)]
#[command(
    name = "stateplane",
    version = version::LINE.as_str(),
    long_version = version::TEXT.as_str(),
    max_term_width = 100,
    after_help = exit::CODES
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::RunArguments),
    Reload(reload::ReloadArguments),
    Check(check::CheckArguments),
    Compile(compile::CompileArguments),
    Fmt(fmt::FmtArguments),
    Explain(explain::ExplainArguments),
    Protect(protect::ProtectArguments),
    Init(init::InitArguments),
    Sync(sync::SyncArguments),
    Tables(control::tables::TablesArguments),
    Registers(control::registers::RegistersArguments),
    Ctl(control::ctl::CtlArguments),
    Test(test::TestArguments),
    Trace(trace::TraceArguments),
    Store(store::StoreArguments),
    Controller(controller::ControllerArguments),
    Engine(sync_engine::SyncEngineArguments),
    View(view::ViewArguments),
    Sketch(sketch::SketchArguments),
    Top(top::TopArguments),
    Kv(kv::KvArguments),
    Multicast(multicast::MulticastArguments),
    Sim(sim::SimArguments),
    Plan(plan::PlanArguments),
    /// Study actions on state that take several clock cycles: hazards, locks, throughput, latency.
    #[command(subcommand)]
    Hazards(hazards::Command),
    /// Build networks of namespaces, and run the failover demonstration (as root, or in a user
    /// namespace).
    #[command(subcommand)]
    Lab(stateplane_lab::Command),
    /// Run the experiments of the RedPlane paper, and write tables and plots.
    #[command(subcommand)]
    Eval(stateplane_eval::Command),
    Completions(manual::CompletionsArguments),
    #[command(hide = true)]
    Manual(manual::ManualArguments),
}

fn main() -> ExitCode {
    closed_pipe::ends_quietly();
    let outcome = match Arguments::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Reload(arguments) => reload::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Compile(arguments) => compile::run(&arguments),
        Command::Fmt(arguments) => fmt::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Protect(arguments) => protect::run(&arguments),
        Command::Init(arguments) => init::run(&arguments),
        Command::Sync(arguments) => sync::run(&arguments),
        Command::Tables(arguments) => control::tables::run(&arguments),
        Command::Registers(arguments) => control::registers::run(&arguments),
        Command::Ctl(arguments) => control::ctl::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Trace(arguments) => trace::run(arguments),
        Command::Store(arguments) => store::run(&arguments),
        Command::Controller(arguments) => controller::run(&arguments),
        Command::Engine(arguments) => sync_engine::run(&arguments),
        Command::View(arguments) => view::run(&arguments),
        Command::Sketch(arguments) => sketch::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Multicast(arguments) => multicast::run(&arguments),
        Command::Hazards(command) => hazards::run(&command),
        Command::Completions(arguments) => {
            manual::complete(&arguments, Arguments::command());
            Ok(())
        }
        Command::Manual(arguments) => manual::write(&arguments, Arguments::command()),
        Command::Kv(arguments) => return kv::run(&arguments),
        Command::Lab(command) => return lab::run(&command),
        Command::Eval(command) => return eval::run(&command),
    };
    exit::report(outcome)
}
