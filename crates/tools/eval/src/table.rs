//! Tables, as text and as CSV (RFC 4180).

use serde::Serialize;
use std::fmt::{self, Write as _};

/// A field of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A figure.
    Number(f64),
    /// Not measured.
    None,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Cell::Number(number)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Cell::Number(number as f64)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Cell::None, Into::into)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Text(text) => f.write_str(text),
            Cell::None => f.write_str("-"),
            Cell::Number(number) if !number.is_finite() => f.write_str("-"),
            Cell::Number(number) => {
                let size = number.abs();
                let places = match size {
                    _ if number.fract() == 0.0 => 0,
                    100.0.. => 0,
                    10.0.. => 1,
                    1.0.. => 2,
                    _ => 4,
                };
                write!(f, "{number:.places$}")
            }
        }
    }
}

/// A table of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Its name, of its CSV file too: `a-z`, `0-9` and `-`.
    pub name: &'static str,
    /// Contents of the columns, with units.
    pub columns: Vec<String>,
    /// Rows, each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table.
    pub fn new(name: &'static str, columns: &[&str]) -> Self {
        Self {
            name,
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, cut or filled up to the number of columns.
    pub fn row(&mut self, mut cells: Vec<Cell>) {
        cells.resize(self.columns.len(), Cell::None);
        self.rows.push(cells);
    }

    /// The table as CSV, with a line of names.
    pub fn csv(&self) -> String {
        let mut csv = String::new();
        let names = self.columns.iter().map(|name| Cell::Text(name.clone()));
        for row in std::iter::once(names.collect()).chain(self.rows.iter().cloned()) {
            let fields: Vec<String> = row.iter().map(field).collect();
            let _ = writeln!(csv, "{}", fields.join(","));
        }
        csv
    }
}

fn field(cell: &Cell) -> String {
    match cell {
        Cell::None => String::new(),
        Cell::Number(number) if number.is_finite() => number.to_string(),
        Cell::Number(_) => String::new(),
        Cell::Text(text) if text.contains([',', '"', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Cell::Text(text) => text.clone(),
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<Vec<String>> = std::iter::once(self.columns.clone())
            .chain(
                self.rows
                    .iter()
                    .map(|row| row.iter().map(Cell::to_string).collect()),
            )
            .collect();
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let is_text = |column: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.any(|cell| matches!(cell, Cell::Text(_)))
        };
        for row in &rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                let gap = if column > 0 { "  " } else { "" };
                let _ = if is_text(column) {
                    write!(line, "{gap}{cell:width$}")
                } else {
                    write!(line, "{gap}{cell:>width$}")
                };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("rtt", &["system", "median (µs)", "lost"]);
        table.row(vec!["NAT, \"ours\"".into(), 12.345.into(), 0u64.into()]);
        table.row(vec!["plain".into(), f64::NAN.into()]);
        table
    }

    #[test]
    fn csv_quotes_what_it_must_and_keeps_all_places() {
        let csv = table().csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[0], "system,median (µs),lost");
        assert_eq!(lines[1], "\"NAT, \"\"ours\"\"\",12.345,0");
        assert_eq!(lines[2], "plain,,");
    }

    #[test]
    fn text_is_aligned_numbers_to_the_right() {
        let text = table().to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "system       median (µs)  lost");
        assert_eq!(lines[1], "NAT, \"ours\"         12.3     0");
        assert_eq!(lines[2], "plain                  -     -");
    }

    #[test]
    fn figures_keep_as_many_places_as_they_need() {
        let shown: Vec<String> = [0.01234, 1.2345, 12.345, 1234.5, 3.0]
            .map(|number| Cell::Number(number).to_string())
            .to_vec();
        assert_eq!(shown, ["0.0123", "1.23", "12.3", "1234", "3"]);
    }
}
