//! The cost of views for packets of the programs of Table II.

use super::followed::Alone;
use super::{FRAMES, turns};
use crate::approsync::Making;
use crate::approsync::applications::{Application, chosen};
use crate::approsync::turns::medians;
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::Series;
use crate::table::Table;

/// Adds a table and a plot of all programs.
pub(super) fn measure(making: &Making<'_>, figure: &mut Figure) -> Result<(), EvalError> {
    let chosen = chosen(making.quick);
    making.bar.inc_length(chosen.len() as u64);
    let mut table = Table::new(
        "applications",
        &[
            "application",
            "a packet without a view (ns)",
            "with views (ns)",
            "throughput (%)",
        ],
    );
    let (mut groups, mut bars) = (Vec::new(), [const { Vec::new() }; 2]);
    for application in chosen {
        making
            .bar
            .set_message(format!("exp6: {}", application.name));
        let [plain, seen] = packet_ns(making, application)?;
        table.row(vec![
            application.name.into(),
            plain.into(),
            seen.into(),
            (100.0 * plain / seen).into(),
        ]);
        for (bars, ns) in bars.iter_mut().zip([plain, seen]) {
            bars.push((0.0, ns));
        }
        groups.push(application.name.to_owned());
        making.bar.inc(1);
    }
    let names = ["without a view", "with views"];
    let series = names.into_iter().zip(bars).map(|(name, points)| Series {
        name: name.to_owned(),
        points,
    });
    figure.bars(
        "applications",
        "ns of a packet",
        &groups,
        &series.collect::<Vec<_>>(),
    )?;
    figure.tables.push(table);
    Ok(())
}

/// Times in ns that the program takes for a packet, as it is and in view, in turns.
fn packet_ns(making: &Making<'_>, application: &Application) -> Result<[f64; 2], EvalError> {
    let frames = (0..FRAMES as u32).filter_map(application.frame);
    let frames: Vec<Vec<u8>> = frames.collect();
    let name = application.name;
    let (plain, viewed) = (application.plain()?, application.viewed()?);
    let (mut plain, mut seen) = (
        Alone::new(name, &plain)?,
        Alone::new(name, viewed.compiled())?,
    );
    application.prepare(plain.state())?;
    application.prepare(seen.state())?;
    let times = medians(
        turns(making),
        [&mut || Ok(plain.pass(&frames)), &mut || {
            Ok(seen.pass(&frames))
        }],
    )?;
    Ok(times.map(|ns| ns / frames.len() as f64))
}
