//! `stateplane explain`: the long text of a code.

use crate::exit::{CommandError, Failure};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use stateplane_diagnostics::Color;
use stateplane_explain::{Example, Explanation};
use std::io::IsTerminal;

/// Explain a code, such as E1101, with a wrong and a right example.
///
/// Without a code, lists all codes with their titles.
#[derive(Args)]
pub struct ExplainArguments {
    /// Codes, such as E1101, as diagnostics show them in brackets
    #[arg(value_name = "CODE")]
    codes: Vec<String>,
    /// Print the whole program of an example, ready to be compiled, instead of the text
    #[arg(long, value_enum, requires = "codes")]
    example: Option<Which>,
    /// Print JSON, one object a line for each code
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// The wrong example, which gives the code
    Wrong,
    /// The right example
    Right,
}

/// Runs the command.
pub fn run(arguments: &ExplainArguments) -> Result<(), CommandError> {
    if arguments.codes.is_empty() {
        if arguments.json {
            stateplane_explain::all().for_each(|text| println!("{}", to_json(&text)))
        } else {
            print!("{}", stateplane_explain::list())
        }
        return Ok(());
    }
    let texts = arguments.codes.iter().map(|code| find(code));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let color = if std::io::stdout().is_terminal() {
        Color::Ansi
    } else {
        Color::Never
    };
    for (position, text) in texts.iter().enumerate() {
        if let Some(which) = arguments.example {
            print!("{}", program(text, which)?);
        } else if arguments.json {
            println!("{}", to_json(text));
        } else {
            let gap = if position == 0 { "" } else { "\n\n" };
            print!("{gap}{}", stateplane_explain::render(text, color));
        }
    }
    Ok(())
}

fn find(code: &str) -> Result<Explanation, CommandError> {
    stateplane_explain::find(code).ok_or_else(|| {
        let advice = match stateplane_explain::nearest(code) {
            Some(near) => format!("did you mean {near}?"),
            None => "`stateplane explain` lists the codes".to_owned(),
        };
        CommandError::new(
            Failure::Input,
            format!("there is no code `{code}`; {advice}"),
        )
    })
}

fn program(text: &Explanation, which: Which) -> Result<String, CommandError> {
    let example = match which {
        Which::Wrong => &text.wrong,
        Which::Right => &text.right,
    };
    let program = example.as_ref().and_then(Example::program);
    program.ok_or_else(|| {
        let code = text.code;
        CommandError::new(
            Failure::Input,
            format!("{code} has no example that is a program"),
        )
    })
}

fn to_json(text: &Explanation) -> Value {
    let example = |example: &Option<Example>| {
        example.map(|example| {
            json!({
                "language": example.language,
                "place": example.place.map(|place| place.words()),
                "text": example.text,
                "program": example.program(),
            })
        })
    };
    json!({
        "code": text.code,
        "title": text.title,
        "text": text.text,
        "wrong": example(&text.wrong),
        "right": example(&text.right),
    })
}
