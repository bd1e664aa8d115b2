//! A result as one self-contained page.

use crate::error::LabError;
use crate::expectation::Expectation;
use std::fmt::{self, Write};
use std::path::Path;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:1000px;margin:2em auto;\
padding:0 1em;color:#222}table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
th,td{padding:.3em .7em;text-align:right;border-bottom:1px solid #ddd}\
th:first-child,td:first-child{text-align:left}svg{width:100%;min-width:680px;height:auto}\
.plot,.table{overflow-x:auto}.fail{color:#b00;font-weight:600}ul{padding-left:1.2em}";

/// Contents of a page.
pub(crate) struct Page<'a> {
    /// The title.
    pub(crate) title: &'static str,
    /// The heading.
    pub(crate) heading: &'static str,
    /// A paragraph on what was done.
    pub(crate) about: &'static str,
    /// An SVG element.
    pub(crate) plot: String,
    /// Head and rows.
    pub(crate) table: Vec<Vec<String>>,
    /// Expectations that must hold.
    pub(crate) expectations: &'a [Expectation],
}

impl Page<'_> {
    /// The page as HTML.
    pub(crate) fn html(&self) -> String {
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <title>{}</title><style>{STYLE}</style></head><body>\n<h1>{}</h1>\n<p>{}</p>\n",
            escape(self.title),
            escape(self.heading),
            escape(self.about)
        );
        // A narrow screen scrolls in the plot, whose labels would be too small otherwise.
        let _ = writeln!(page, "<div class=\"plot\">{}</div>", self.plot);
        page.push_str("<div class=\"table\"><table>\n");
        for (number, row) in self.table.iter().enumerate() {
            let tag = if number == 0 { "th" } else { "td" };
            page.push_str("<tr>");
            for cell in row {
                let _ = write!(page, "<{tag}>{}</{tag}>", escape(cell));
            }
            page.push_str("</tr>\n");
        }
        page.push_str("</table></div>\n<ul>\n");
        for expectation in self.expectations {
            let class = if expectation.met { "ok" } else { "fail" };
            let text = expectation.to_string();
            let _ = writeln!(page, "<li class=\"{class}\">{}</li>", escape(&text));
        }
        page.push_str("</ul>\n</body></html>\n");
        page
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Writes a file of a result.
///
/// # Errors
/// `LAB003` if it cannot be written.
pub(crate) fn write(directory: &Path, name: &str, text: &str) -> Result<(), LabError> {
    let path = directory.join(name);
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|reason| LabError::file(path, reason))
}

/// A table for a terminal: the first column to the left, the others to the right, a line below the
/// head.
pub(crate) fn write_table(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for (number, row) in rows.iter().enumerate() {
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if index == 0 {
                write!(f, "{cell:<width$}")?;
            } else {
                write!(f, "  {cell:>width$}")?;
            }
        }
        writeln!(f)?;
        if number == 0 {
            let total = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
            writeln!(f, "{}", "─".repeat(total))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_markup() {
        assert_eq!(escape("<a&\">"), "&lt;a&amp;&quot;&gt;");
    }
}
