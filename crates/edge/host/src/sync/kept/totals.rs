//! Totals of counters as they are kept: the view that they belong to, its values, the totals and the
//! discontinuities, all big-endian.

use stateplane_sync::KeptTotals;

/// Bytes before those of the locations.
const HEAD: usize = 18;

/// Bytes of a location: its value, its total, its discontinuities.
const EACH: usize = 8 + 8 + 4;

/// Totals as they are kept.
pub(super) fn to_vec(totals: &KeptTotals) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + totals.values.len() * EACH);
    bytes.extend(totals.incarnation.to_be_bytes());
    bytes.extend(totals.epoch.to_be_bytes());
    bytes.extend(totals.sum.to_be_bytes());
    bytes.extend(totals.life.to_be_bytes());
    let locations = totals.values.iter().zip(&totals.totals);
    for ((value, total), breaks) in locations.zip(&totals.discontinuities) {
        bytes.extend(value.to_be_bytes());
        bytes.extend(total.to_be_bytes());
        bytes.extend(breaks.to_be_bytes());
    }
    bytes
}

/// The totals; `None` if the bytes make no sense.
pub(super) fn parse(bytes: &[u8]) -> Option<KeptTotals> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let (locations, []) = rest.as_chunks::<EACH>() else {
        return None;
    };
    let (first, rest) = head.split_first_chunk::<8>()?;
    let (sum, life) = rest.split_first_chunk::<8>()?;
    let (incarnation, epoch) = first.split_first_chunk::<4>()?;
    let mut totals = KeptTotals {
        incarnation: u32::from_be_bytes(*incarnation),
        epoch: u32::from_be_bytes(epoch.try_into().ok()?),
        sum: u64::from_be_bytes(*sum),
        life: u16::from_be_bytes(life.try_into().ok()?),
        ..KeptTotals::default()
    };
    for location in locations {
        let (value, rest) = location.split_first_chunk::<8>()?;
        let (total, breaks) = rest.split_first_chunk::<8>()?;
        totals.values.push(u64::from_be_bytes(*value));
        totals.totals.push(u64::from_be_bytes(*total));
        let breaks = u32::from_be_bytes(breaks.try_into().ok()?);
        totals.discontinuities.push(breaks);
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_as_they_were_written_and_no_part_of_them_is() {
        let totals = KeptTotals {
            incarnation: 7,
            epoch: 9,
            sum: 1 << 50,
            values: vec![1, u64::MAX],
            totals: vec![1 << 40, 3],
            discontinuities: vec![0, u32::MAX],
            life: 515,
        };
        let bytes = to_vec(&totals);
        assert_eq!(parse(&bytes), Some(totals));
        assert_eq!(parse(&bytes[1..]), None);
        assert_eq!(parse(&bytes[..HEAD - 1]), None);
        assert_eq!(parse(&bytes[..HEAD]).map(|it| it.values), Some(vec![]));
    }
}
