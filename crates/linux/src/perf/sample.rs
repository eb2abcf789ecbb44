//! Decodes samples, whose fields `sample_type` determines.
//!
//! Their order is that of `PERF_RECORD_SAMPLE` in `include/uapi/linux/perf_event.h`. All have 8 bytes, except
//! `PERF_SAMPLE_RAW`: a 32-bit size and as many bytes.

use super::record::half;
use super::sys::sample;

/// Fields of a sample; absent ones are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fields<'a> {
    pub pid: u32,
    pub time: u64,
    pub address: u64,
    pub period: u64,
    /// The PMU's own record, including padding.
    pub raw: &'a [u8],
    /// Latency in cycles.
    pub latency: u32,
    /// `union perf_mem_data_src`.
    pub data_source: u64,
}

/// Fields of a sample: task, time and address, and those that are set here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    period: bool,
    raw: bool,
    weight: bool,
    data_source: bool,
}

impl Layout {
    /// Returns `None` if `sample_type` has an unknown field or lacks task, time or address.
    pub fn new(sample_type: u64) -> Option<Self> {
        const ALWAYS: u64 = sample::TID | sample::TIME | sample::ADDR;
        const KNOWN: u64 = ALWAYS | sample::PERIOD | sample::RAW | sample::WEIGHT | sample::DATA_SRC;
        let has = |field: u64| sample_type & field != 0;
        (sample_type & ALWAYS == ALWAYS && sample_type & !KNOWN == 0).then(|| Self {
            period: has(sample::PERIOD),
            raw: has(sample::RAW),
            weight: has(sample::WEIGHT),
            data_source: has(sample::DATA_SRC),
        })
    }

    /// Decodes the body of a sample; `None` if it is too short.
    #[inline]
    pub fn decode<'a>(&self, body: &'a [u8]) -> Option<Fields<'a>> {
        let (task, rest) = body.split_first_chunk::<8>()?;
        let (time, rest) = rest.split_first_chunk::<8>()?;
        let (address, rest) = rest.split_first_chunk::<8>()?;
        let (period, rest) = split_if(self.period, rest)?;
        let (raw, rest) = if self.raw { split_raw(rest)? } else { rest.split_at(0) };
        let (weight, rest) = split_if(self.weight, rest)?;
        let (data_source, _) = split_if(self.data_source, rest)?;
        Some(Fields {
            pid: half(task, 0)?,
            time: u64::from_ne_bytes(*time),
            address: u64::from_ne_bytes(*address),
            period,
            raw,
            latency: u32::try_from(weight).unwrap_or(u32::MAX),
            data_source,
        })
    }
}

/// Splits a word from what follows, or 0 where the field is absent.
#[inline]
fn split_if(present: bool, bytes: &[u8]) -> Option<(u64, &[u8])> {
    if !present {
        return Some((0, bytes));
    }
    let (word, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_ne_bytes(*word), rest))
}

/// Splits the raw record, a 32-bit size and as many bytes, from what follows.
fn split_raw(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = half(bytes, 0)? as usize;
    bytes.get(4..)?.split_at_checked(size)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALWAYS: u64 = sample::TID | sample::TIME | sample::ADDR;

    /// Encodes a sample as the kernel's `perf_output_sample` does: an independent statement of the order.
    fn encode(sample_type: u64, values: &Fields<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |bit: u64, bytes: &[u8]| {
            if sample_type & (1 << bit) != 0 {
                out.extend_from_slice(bytes);
            }
        };
        put(1, &[values.pid.to_ne_bytes(), 0xbb_u32.to_ne_bytes()].concat());
        put(2, &values.time.to_ne_bytes());
        put(3, &values.address.to_ne_bytes());
        put(8, &values.period.to_ne_bytes());
        put(10, &(values.raw.len() as u32).to_ne_bytes());
        put(10, values.raw);
        put(14, &u64::from(values.latency).to_ne_bytes());
        put(15, &values.data_source.to_ne_bytes());
        out
    }

    /// Returns what a sample of this type tells of `values`.
    fn visible<'a>(sample_type: u64, values: &Fields<'a>) -> Fields<'a> {
        let has = |bit: u64| sample_type & (1 << bit) != 0;
        Fields {
            period: if has(8) { values.period } else { 0 },
            latency: if has(14) { values.latency } else { 0 },
            data_source: if has(15) { values.data_source } else { 0 },
            raw: if has(10) { values.raw } else { &[] },
            ..*values
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            chosen in prop::collection::vec(prop::sample::select(&[8u64, 10, 14, 15][..]), 0..5),
            numbers in prop::collection::vec(any::<u64>(), 4),
            small in prop::collection::vec(any::<u32>(), 2),
            raw_words in 0usize..12,
        ) {
            let sample_type = chosen.iter().fold(ALWAYS, |bits, bit| bits | 1 << bit);
            // Padded so that size and content together fill whole words.
            let raw: Vec<u8> = (0..raw_words * 8 + 4).map(|byte| byte as u8).collect();
            let values = Fields {
                pid: small[0], time: numbers[0], address: numbers[1], period: numbers[2], latency: small[1],
                data_source: numbers[3], raw: &raw,
            };
            let layout = Layout::new(sample_type).expect("all bits are known");
            let body = encode(sample_type, &values);
            prop_assert_eq!(layout.decode(&body), Some(visible(sample_type, &values)));
            prop_assert_eq!(layout.decode(&body[..body.len() - 1]), None);
        }

        #[test]
        fn no_bytes_make_it_panic(bits in 0u64..1 << 16, body in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(layout) = Layout::new(bits | ALWAYS) {
                let _ = layout.decode(&body);
            }
        }
    }

    #[test]
    fn unknown_fields_and_missing_ones_are_refused() {
        for bit in [0, 4, 5, 6, 7, 9, 11, 12, 13, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25] {
            assert_eq!(Layout::new(ALWAYS | 1 << bit), None, "bit {bit}");
        }
        assert_eq!(Layout::new(sample::TID | sample::TIME), None);
    }

    #[test]
    fn a_latency_beyond_32_bits_is_the_longest() {
        let mut body = encode(ALWAYS, &Fields::default());
        body.extend((1u64 << 40).to_ne_bytes());
        let fields =
            Layout::new(ALWAYS | sample::WEIGHT).and_then(|layout| layout.decode(&body)).expect("whole");
        assert_eq!(fields.latency, u32::MAX);
    }
}
