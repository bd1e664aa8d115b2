//! The form of a file in `codes/`.

use crate::Example;

/// The long text of one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The code, such as `E1101`.
    pub code: &'static str,
    /// Title: common meaning of all reports with the code, in one line.
    pub title: &'static str,
    /// The explanation, paragraphs of Markdown.
    pub text: &'static str,
    /// Something that gives the code.
    pub wrong: Option<Example>,
    /// The right example.
    pub right: Option<Example>,
}

impl Explanation {
    /// Takes a file apart. What is missing from it is empty; a test sees to it that the
    /// files lack nothing.
    pub(crate) fn parse(code: &'static str, markdown: &'static str) -> Explanation {
        let (heading, rest) = markdown.split_once('\n').unwrap_or((markdown, ""));
        let title = heading
            .strip_prefix("# ")
            .and_then(|heading| heading.strip_prefix(code))
            .and_then(|heading| heading.strip_prefix(": "))
            .unwrap_or_default();
        let (rest, right) = rest.split_once("\n## Right\n").unwrap_or((rest, ""));
        let (text, wrong) = rest.split_once("\n## Wrong\n").unwrap_or((rest, ""));
        Explanation {
            code,
            title,
            text: text.trim(),
            wrong: Example::parse(wrong),
            right: Example::parse(right),
        }
    }
}
