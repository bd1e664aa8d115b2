//! Outcomes of mutants.

use std::fmt;

use serde_json::{Value, json};

use crate::mutant::Mutant;

/// Outcome of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its test failed.
    Killed,
    /// Its test took far longer than without it.
    TimedOut,
    /// Its test passed: nothing noticed.
    Survived,
    /// Its text is not there exactly once.
    NotApplicable(String),
    /// The compiler refuses it.
    DoesNotBuild(String),
    /// Its test is not there, or fails without it too.
    NoTest(String),
}

impl Outcome {
    /// True if the rule that the mutant breaks is tested.
    pub fn is_killed(&self) -> bool {
        matches!(self, Outcome::Killed | Outcome::TimedOut)
    }

    fn name(&self) -> &'static str {
        match self {
            Outcome::Killed => "killed",
            Outcome::TimedOut => "killed (time)",
            Outcome::Survived => "SURVIVED",
            Outcome::NotApplicable(_) => "NOT APPLICABLE",
            Outcome::DoesNotBuild(_) => "DOES NOT BUILD",
            Outcome::NoTest(_) => "NO TEST",
        }
    }

    fn why(&self) -> &str {
        match self {
            Outcome::Killed | Outcome::TimedOut | Outcome::Survived => "",
            Outcome::NotApplicable(why) | Outcome::DoesNotBuild(why) | Outcome::NoTest(why) => why,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One line that tells of a mutant, and more if its outcome is not good.
pub fn line(mutant: &Mutant, outcome: &Outcome, seconds: f64) -> String {
    let line = format!("{outcome:14} {seconds:6.1} s  {}", mutant.name);
    if outcome.is_killed() {
        return line;
    }
    let test = &mutant.test;
    let why = outcome.why().replace('\n', "\n    ");
    format!(
        "{line}: {}\n    test {} {} {}\n    {why}",
        mutant.breaks, test.package, test.target, test.name
    )
}

/// Number of mutants with each outcome.
pub fn summary(outcomes: &[Outcome]) -> String {
    let count = |of: fn(&Outcome) -> bool| outcomes.iter().filter(|o| of(o)).count();
    format!(
        "{} mutants: {} killed, {} survived, {} not applicable, {} do not build, {} without a test",
        outcomes.len(),
        count(Outcome::is_killed),
        count(|o| matches!(o, Outcome::Survived)),
        count(|o| matches!(o, Outcome::NotApplicable(_))),
        count(|o| matches!(o, Outcome::DoesNotBuild(_))),
        count(|o| matches!(o, Outcome::NoTest(_))),
    )
}

/// The outcomes, mutant by mutant.
pub fn to_json(mutants: &[Mutant], outcomes: &[Outcome]) -> Value {
    let pairs = mutants.iter().zip(outcomes);
    let mutants: Vec<Value> = pairs
        .map(|(mutant, outcome)| {
            let test = &mutant.test;
            json!({
                "name": mutant.name,
                "breaks": mutant.breaks,
                "test": [test.package, test.target, test.name],
                "outcome": outcome.name(),
                "killed": outcome.is_killed(),
                "why": outcome.why(),
            })
        })
        .collect();
    json!({
        "good": outcomes.iter().all(Outcome::is_killed),
        "mutants": mutants,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_test_objects_to_is_good() {
        let why = || "why".to_owned();
        let outcomes = [
            Outcome::Killed,
            Outcome::TimedOut,
            Outcome::Survived,
            Outcome::NotApplicable(why()),
            Outcome::DoesNotBuild(why()),
            Outcome::NoTest(why()),
        ];
        let good = outcomes.iter().filter(|outcome| outcome.is_killed());
        assert_eq!(good.count(), 2);
        assert_eq!(
            summary(&outcomes),
            "6 mutants: 2 killed, 1 survived, 1 not applicable, 1 do not build, 1 without a test"
        );
    }
}
