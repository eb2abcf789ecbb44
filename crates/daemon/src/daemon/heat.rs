//! A heatmap of address over time, from looks at the memory by address.

use std::collections::VecDeque;

use isotherm_core::machine_status::MappingStatus;
use serde_json::{Value, json};

/// Cells of a column, shared out among its stretches by their length.
const CELLS: u64 = 256;
/// Most rows of a map.
const MAX_ROWS: usize = 128;
/// Least bytes of a row.
const PAGE: u64 = 4096;

/// One look at the memory by address.
pub(super) struct Column {
    time_s: f64,
    stretches: Vec<Stretch>,
}

/// Memory of a process, in equal parts: sampled accesses, and the percentage that is fast.
struct Stretch {
    pid: u32,
    start: u64,
    bytes: u64,
    cells: Box<[(u32, u8)]>,
}

impl Column {
    pub(super) fn of(time_s: f64, mappings: &[MappingStatus]) -> Self {
        let all: u64 = mappings.iter().map(|one| one.bytes.0).sum();
        let stretch = |one: &MappingStatus| {
            let length = one.cells.len();
            let count = (CELLS as f64 * one.bytes.0 as f64 / all as f64).ceil() as usize;
            let count = count.clamp(1, length.max(1));
            let merged = |part: usize| {
                let cells = &one.cells[part * length / count..(part + 1) * length / count];
                let accesses: u64 = cells.iter().map(|cell| cell.0).sum();
                let fast: usize = cells.iter().map(|cell| usize::from(cell.1)).sum();
                (accesses.min(u64::from(u32::MAX)) as u32, (fast / cells.len().max(1)) as u8)
            };
            Stretch {
                pid: one.pid,
                start: one.start,
                bytes: one.bytes.0,
                cells: (0..count).map(merged).collect(),
            }
        };
        Self { time_s, stretches: mappings.iter().map(stretch).collect() }
    }
}

/// A range of addresses of a process, and the bytes of all ranges before it.
struct Span {
    pid: u32,
    start: u64,
    end: u64,
    offset: u64,
}

/// Returns all ranges that were ever there, by process and address, without the gaps between them.
fn spans(columns: &VecDeque<Column>) -> Vec<Span> {
    let all = columns.iter().flat_map(|column| &column.stretches);
    let mut ranges: Vec<_> = all.map(|one| (one.pid, one.start, one.start + one.bytes)).collect();
    ranges.sort_unstable();
    let mut spans: Vec<Span> = Vec::new();
    for (pid, start, end) in ranges {
        match spans.last_mut() {
            Some(last) if last.pid == pid && start <= last.end => last.end = last.end.max(end),
            _ => spans.push(Span { pid, start, end, offset: 0 }),
        }
    }
    let mut offset = 0;
    for span in &mut spans {
        span.offset = offset;
        offset += span.end - span.start;
    }
    spans
}

/// Returns the map as the pages' script draws it, with the times of its first and last column.
pub(super) fn heat_map(columns: &VecDeque<Column>) -> Value {
    let spans = spans(columns);
    let all = spans.last().map_or(0, |last| last.offset + last.end - last.start);
    let rows = ((all / PAGE) as usize).min(MAX_ROWS);
    let row_bytes = all as f64 / rows.max(1) as f64;
    let wide = columns.len();
    let (mut counts, mut fast, mut known) =
        (vec![0.0; rows * wide], vec![0.0; rows * wide], vec![0.0; rows * wide]);
    for (place, column) in columns.iter().enumerate() {
        for stretch in &column.stretches {
            let at = spans.partition_point(|span| (span.pid, span.start) <= (stretch.pid, stretch.start));
            let Some(span) = at.checked_sub(1).map(|at| &spans[at]) else { continue };
            let length = stretch.bytes as f64 / stretch.cells.len() as f64;
            let mut from = (span.offset + stretch.start - span.start) as f64;
            for &(accesses, share) in &stretch.cells {
                let to = from + length;
                for row in (from / row_bytes) as usize..rows {
                    let (low, high) = (row as f64 * row_bytes, (row + 1) as f64 * row_bytes);
                    if low >= to {
                        break;
                    }
                    let part = (high.min(to) - low.max(from)).max(0.0);
                    counts[row * wide + place] += f64::from(accesses) * part / length;
                    fast[row * wide + place] += part * f64::from(share) / 100.0;
                    known[row * wide + place] += part;
                }
                from = to;
            }
        }
    }
    let address = |row: usize| {
        let offset = (row as f64 * row_bytes) as u64;
        let span = &spans[spans.partition_point(|span| span.offset <= offset) - 1];
        format!("{:#x}", span.start + offset - span.offset)
    };
    // A letter from `a` for nothing fast to `p` for all.
    let letter =
        |(fast, known): (&f64, &f64)| char::from(b'a' + (15.0 * fast / known.max(1.0)).round() as u8);
    let objects = |spans: &[Span]| {
        let pids = spans.chunk_by(|one, next| one.pid == next.pid);
        let object = |spans: &[Span]| {
            let length: u64 = spans.iter().map(|span| span.end - span.start).sum();
            json!([
                format!("process {}", spans[0].pid),
                length as f64 / row_bytes,
                latest(columns, spans[0].pid)
            ])
        };
        pids.map(object).collect::<Vec<_>>()
    };
    json!({
        "columns": wide,
        "rows": rows,
        "seconds": [columns.front().map(|one| one.time_s), columns.back().map(|one| one.time_s)],
        "bytes_per_row": row_bytes.round() as u64,
        "addresses": (0..rows).map(address).collect::<Vec<_>>(),
        "counts": counts.iter().map(|count| count.round() as u64).collect::<Vec<_>>(),
        "fast": fast.iter().zip(&known).map(letter).collect::<String>(),
        "objects": objects(&spans),
    })
}

/// Returns the accesses to a process's memory in the last column.
fn latest(columns: &VecDeque<Column>, pid: u32) -> u64 {
    let last = columns.back().into_iter().flat_map(|column| &column.stretches);
    last.filter(|one| one.pid == pid).flat_map(|one| &one.cells).map(|cell| u64::from(cell.0)).sum()
}

#[cfg(test)]
mod tests {
    use isotherm_core::Bytes;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn mapping(pid: u32, start: u64, mib: u64, cells: &[(u64, u8)]) -> MappingStatus {
        let bytes = Bytes(mib * MIB);
        MappingStatus { pid, start, bytes, cells: cells.to_vec(), ..MappingStatus::default() }
    }

    #[test]
    fn memory_keeps_its_rows_while_it_grows_and_gaps_are_left_out() {
        let (near, far) = (MIB, 1 << 40);
        let columns: VecDeque<Column> = [
            Column::of(20.0, &[mapping(1, near, 4, &[(100, 100), (0, 0)])]),
            Column::of(
                40.0,
                &[mapping(1, near, 8, &[(8, 100), (0, 0), (0, 0), (40, 0)]), mapping(2, far, 8, &[(64, 50)])],
            ),
        ]
        .into();
        let map = heat_map(&columns);
        assert_eq!((&map["columns"], &map["rows"]), (&2.into(), &128.into()), "{map}");
        assert_eq!((&map["bytes_per_row"], &map["seconds"]), (&(MIB / 8).into(), &json!([20.0, 40.0])));
        let count = |row: usize, column: usize| map["counts"][row * 2 + column].as_f64().expect("a count");
        // 100 accesses to 2 MiB, a row has an eighth of one.
        assert_eq!([count(0, 0), count(15, 0), count(16, 0), count(64, 0)], [6.0, 6.0, 0.0, 0.0]);
        assert_eq!([count(0, 1), count(63, 1), count(64, 1)], [1.0, 3.0, 1.0]);
        let sum: f64 = (0..128).map(|row| count(row, 1)).sum();
        assert!((sum - 112.0).abs() <= 16.0, "{sum}");
        let fast = map["fast"].as_str().expect("letters").as_bytes();
        assert_eq!([fast[0], fast[2 * 64 + 1], fast[2 * 20]], [b'p', b'i', b'a']);
        assert_eq!(map["addresses"][64], format!("{far:#x}"));
        assert_eq!(map["objects"], json!([["process 1", 64.0, 48], ["process 2", 64.0, 64]]));
    }

    #[test]
    fn columns_are_bounded_and_nothing_is_an_empty_map() {
        let many: Vec<_> = (0..64).map(|at| mapping(1, at << 30, 1, &[(1, 0); 64])).collect();
        let column = Column::of(1.0, &many);
        assert!(column.stretches.iter().map(|one| one.cells.len()).sum::<usize>() <= 320);
        assert_eq!(heat_map(&VecDeque::new())["counts"], json!([]));
        assert_eq!(heat_map(&[Column::of(1.0, &[])].into())["rows"], 0);
    }
}
