//! The result as one self-contained page.

use super::plot;
use super::report::DemoReport;
use crate::error::LabError;
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:1000px;margin:2em auto;\
padding:0 1em;color:#222}table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
th,td{padding:.3em .7em;text-align:right;border-bottom:1px solid #ddd}\
th:first-child,td:first-child{text-align:left}svg{width:100%;height:auto}\
.fail{color:#b00;font-weight:600}ul{padding-left:1.2em}";

/// The page with table, plot and expectations.
pub(super) fn html(report: &DemoReport) -> Result<String, LabError> {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <title>Stateplane: a switch fails</title><style>{STYLE}</style></head><body>\n\
         <h1>A switch fails under live TCP connections</h1>\n\
         <p>A NAT in P4 on two switches. The one that carries iperf3 is killed and later \
         started again, without and with replicated state; the same traffic without a \
         failure for comparison (after RedPlane, SIGCOMM 2021, Fig. 14).</p>\n"
    );
    page.push_str(&plot::svg(report)?);
    page.push_str("\n<table>\n");
    for (number, row) in report.table().iter().enumerate() {
        let tag = if number == 0 { "th" } else { "td" };
        page.push_str("<tr>");
        for cell in row {
            let _ = write!(page, "<{tag}>{}</{tag}>", escape(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>\n<ul>\n");
    for expectation in &report.expectations {
        let class = if expectation.met { "ok" } else { "fail" };
        let text = expectation.to_string();
        let _ = writeln!(page, "<li class=\"{class}\">{}</li>", escape(&text));
    }
    page.push_str("</ul>\n</body></html>\n");
    Ok(page)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::expect::example;
    use crate::demo::report::Kind;

    #[test]
    fn the_page_needs_nothing_else() {
        let report = DemoReport::new(Kind::ALL.map(example).to_vec());
        let page = html(&report).unwrap();
        assert!(page.contains("<svg") && page.contains("<table>"));
        for outside in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(escape("<a&\">"), "&lt;a&amp;&quot;&gt;");
    }
}
