//! Decodes samples: `sample_type` determines where fields stand, which is computed once.
//!
//! The order of fields is that of `PERF_RECORD_SAMPLE` in `include/uapi/linux/perf_event.h`. All fields have
//! a fixed size except `PERF_SAMPLE_RAW`, which moves the fields behind it; a layout without it is read at
//! constant offsets.

use super::record::{half, word};
use super::sys::sample;

/// Fields of a sample; absent ones are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fields<'a> {
    /// Process.
    pub pid: u32,
    /// Time on the clock of the event.
    pub time: u64,
    /// Data address.
    pub address: u64,
    /// Period in force.
    pub period: u64,
    /// Latency in cycles.
    pub latency: u32,
    /// What served the access: `union perf_mem_data_src`.
    pub data_source: u64,
    /// The PMU's own record, including padding.
    pub raw: &'a [u8],
}

/// Fields before the raw record, in order; each of 8 bytes.
const BEFORE: [u64; 9] = [
    sample::IDENTIFIER,
    sample::IP,
    sample::TID,
    sample::TIME,
    sample::ADDR,
    sample::ID,
    sample::STREAM_ID,
    sample::CPU,
    sample::PERIOD,
];

/// Fields behind the raw record.
const BEHIND: [u64; 7] = [
    sample::WEIGHT | sample::WEIGHT_STRUCT,
    sample::DATA_SRC,
    sample::TRANSACTION,
    sample::PHYS_ADDR,
    sample::CGROUP,
    sample::DATA_PAGE_SIZE,
    sample::CODE_PAGE_SIZE,
];

/// Offset of a field that a layout lacks: beyond the end of any record.
const ABSENT: u16 = u16::MAX;

/// Offsets of a sample's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    before: [u16; BEFORE.len()],
    /// Offsets from the end of the raw record.
    behind: [u16; BEHIND.len()],
    raw: bool,
    /// Bytes before the raw record.
    fixed: usize,
    /// Bytes behind it.
    rest: usize,
    weight_struct: bool,
    shape: Option<Shape>,
}

/// Most frequent samples: task, time and address, then perhaps the period, then perhaps latency and data
/// source. They are read without looking up offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    period: bool,
    served: bool,
}

impl Shape {
    fn of(sample_type: u64) -> Option<Self> {
        const ALWAYS: u64 = sample::TID | sample::TIME | sample::ADDR;
        const SERVED: u64 = sample::WEIGHT | sample::DATA_SRC;
        let (period, served) = (sample_type & sample::PERIOD != 0, sample_type & SERVED == SERVED);
        let whole = ALWAYS | if period { sample::PERIOD } else { 0 } | if served { SERVED } else { 0 };
        (sample_type == whole).then_some(Self { period, served })
    }

    #[inline]
    fn decode(self, body: &[u8]) -> Option<Fields<'_>> {
        let (task, rest) = body.split_first_chunk::<8>()?;
        let (time, rest) = rest.split_first_chunk::<8>()?;
        let (address, rest) = rest.split_first_chunk::<8>()?;
        let (period, rest) = if self.period { rest.split_first_chunk::<8>()? } else { (&[0; 8], rest) };
        let (weight, data_source) = if self.served {
            let (weight, rest) = rest.split_first_chunk::<8>()?;
            (weight, rest.first_chunk::<8>()?)
        } else {
            (&[0; 8], &[0; 8])
        };
        Some(Fields {
            pid: first_half(u64::from_ne_bytes(*task)),
            time: u64::from_ne_bytes(*time),
            address: u64::from_ne_bytes(*address),
            period: u64::from_ne_bytes(*period),
            latency: clamped(u64::from_ne_bytes(*weight)),
            data_source: u64::from_ne_bytes(*data_source),
            ..Fields::default()
        })
    }
}

/// Limits a latency to 32 bits.
fn clamped(weight: u64) -> u32 {
    u32::try_from(weight).unwrap_or(u32::MAX)
}

fn offsets<const N: usize>(fields: &[u64; N], sample_type: u64) -> ([u16; N], usize) {
    let mut next = 0;
    let offsets = fields.map(|field| {
        if sample_type & field == 0 {
            return ABSENT;
        }
        next += 8;
        next - 8
    });
    (offsets, usize::from(next))
}

impl Layout {
    /// Returns the layout for `sample_type`; `None` if it has an unknown field.
    pub fn new(sample_type: u64) -> Option<Self> {
        let known = BEFORE.iter().chain(&BEHIND).fold(sample::RAW, |bits, field| bits | field);
        if sample_type & !known != 0 {
            return None;
        }
        let (before, fixed) = offsets(&BEFORE, sample_type);
        let (behind, rest) = offsets(&BEHIND, sample_type);
        let raw = sample_type & sample::RAW != 0;
        Some(Self {
            before,
            behind,
            raw,
            fixed,
            rest,
            weight_struct: sample_type & sample::WEIGHT_STRUCT != 0,
            shape: Shape::of(sample_type),
        })
    }

    /// Decodes the body of a sample; `None` if it is too short.
    #[inline]
    pub fn decode<'a>(&self, body: &'a [u8]) -> Option<Fields<'a>> {
        match self.shape {
            Some(shape) => shape.decode(body),
            None => self.decode_any(body),
        }
    }

    fn decode_any<'a>(&self, body: &'a [u8]) -> Option<Fields<'a>> {
        let (raw, tail) = if self.raw {
            split_raw(body.get(self.fixed..)?)?
        } else {
            (&body[..0], body.get(self.fixed..)?)
        };
        if tail.len() < self.rest {
            return None;
        }
        let before = |field: usize| word(body, usize::from(self.before[field])).unwrap_or(0);
        let behind = |field: usize| word(tail, usize::from(self.behind[field])).unwrap_or(0);
        let weight = behind(0);
        Some(Fields {
            pid: first_half(before(2)),
            time: before(3),
            address: before(4),
            period: before(8),
            latency: if self.weight_struct { first_weight(weight) } else { clamped(weight) },
            data_source: behind(1),
            raw,
        })
    }
}

/// Returns the first 32-bit number of a word in the order of memory.
#[inline]
fn first_half(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}

/// Returns `var1_dw` of `union perf_sample_weight`: the low half of the number, in either byte order.
fn first_weight(weight: u64) -> u32 {
    weight as u32
}

/// Splits the raw record, a 32-bit size and as many bytes, from what follows.
fn split_raw(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = half(bytes, 0)? as usize;
    let content = bytes.get(4..)?;
    (size <= content.len()).then(|| content.split_at(size))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Encodes a sample as the kernel's `perf_output_sample` does: an independent statement of the order.
    fn encode(sample_type: u64, values: &Fields<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |bit: u64, bytes: &[u8]| {
            if sample_type & (1 << bit) != 0 {
                out.extend_from_slice(bytes);
            }
        };
        let pair = |a: u32, b: u32| [a.to_ne_bytes(), b.to_ne_bytes()].concat();
        put(16, &[0x88; 8]);
        put(0, &[0xaa; 8]);
        put(1, &pair(values.pid, 0xbb));
        put(2, &values.time.to_ne_bytes());
        put(3, &values.address.to_ne_bytes());
        put(6, &[0x88; 8]);
        put(9, &[0x99; 8]);
        put(7, &pair(0xcc, 0x77));
        put(8, &values.period.to_ne_bytes());
        put(10, &(values.raw.len() as u32).to_ne_bytes());
        put(10, values.raw);
        put(14, &u64::from(values.latency).to_ne_bytes());
        put(24, &(u64::from(values.latency) | 0xabcd << 32 | 0xef01 << 48).to_ne_bytes());
        put(15, &values.data_source.to_ne_bytes());
        put(17, &[0x55; 8]);
        put(19, &[0xdd; 8]);
        put(21, &[0x66; 8]);
        put(22, &[0x44; 8]);
        put(23, &[0x33; 8]);
        out
    }

    const BITS: [u64; 19] = [0, 1, 2, 3, 6, 7, 8, 9, 10, 14, 15, 16, 17, 19, 21, 22, 23, 24, 16];

    /// Returns what a sample of this type tells of `values`.
    fn visible<'a>(sample_type: u64, values: &Fields<'a>) -> Fields<'a> {
        let has = |bits: u64| sample_type & bits != 0;
        let keep = |bits: u64, value: u64| if has(bits) { value } else { 0 };
        Fields {
            pid: keep(2, u64::from(values.pid)) as u32,
            time: keep(4, values.time),
            address: keep(8, values.address),
            period: keep(1 << 8, values.period),
            latency: keep(1 << 14 | 1 << 24, u64::from(values.latency)) as u32,
            data_source: keep(1 << 15, values.data_source),
            raw: if has(1 << 10) { values.raw } else { &[] },
        }
    }

    #[test]
    fn common_samples_are_read_the_same_the_short_way() {
        let common = sample::TID | sample::TIME | sample::ADDR;
        let served = sample::WEIGHT | sample::DATA_SRC;
        for sample_type in
            [common, common | sample::PERIOD, common | served, common | sample::PERIOD | served]
        {
            let layout = Layout::new(sample_type).expect("all bits are known");
            assert!(layout.shape.is_some());
            let numbers = Fields { pid: 1, time: 3, address: 4, period: 5, ..Fields::default() };
            let values = Fields { latency: 6, data_source: 7, ..numbers };
            let body = encode(sample_type, &values);
            assert_eq!(layout.decode(&body), Some(visible(sample_type, &values)));
            assert_eq!(layout.decode_any(&body), layout.decode(&body));
            assert_eq!(layout.decode(&body[..body.len() - 1]), None);
        }
        assert_eq!(Layout::new(common | sample::WEIGHT).expect("known").shape, None);
        assert_eq!(Layout::new(common | sample::RAW).expect("known").shape, None);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            chosen in prop::collection::vec(prop::sample::select(&BITS[..]), 0..19),
            numbers in prop::collection::vec(any::<u64>(), 4),
            small in prop::collection::vec(any::<u32>(), 2),
            raw_words in 0usize..12,
        ) {
            let mut sample_type = chosen.iter().fold(0, |bits, bit| bits | 1 << bit);
            // The kernel refuses both weights at once.
            if sample_type & (1 << 14) != 0 { sample_type &= !(1 << 24); }
            // Padded so that size and content together fill whole words.
            let raw: Vec<u8> = (0..raw_words * 8 + 4).map(|byte| byte as u8).collect();
            let values = Fields {
                pid: small[0], time: numbers[0], address: numbers[1], period: numbers[2], latency: small[1],
                data_source: numbers[3], raw: &raw,
            };
            let layout = Layout::new(sample_type).expect("all bits are known");
            let body = encode(sample_type, &values);
            prop_assert_eq!(layout.decode(&body), Some(visible(sample_type, &values)));
            if !body.is_empty() {
                prop_assert_eq!(layout.decode(&body[..body.len() - 1]), None);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bits in 0u64..1 << 25, body in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(layout) = Layout::new(bits) {
                let _ = layout.decode(&body);
            }
        }
    }

    #[test]
    fn a_type_with_fields_of_unknown_size_is_refused() {
        for bit in [4, 5, 11, 12, 13, 18, 20, 25] {
            assert_eq!(Layout::new(1 << bit), None, "bit {bit}");
        }
    }
}
