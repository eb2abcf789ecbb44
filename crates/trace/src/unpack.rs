//! Decompression of pages into memory that is kept from page to page.

use std::array;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use zstd::bulk::Decompressor;

/// Largest buffer that is kept; those of other writers' larger pages go back to the system.
const KEPT_BYTES: usize = 2 << 20;

/// Decompressor of a file's pages, and the memory of pages that nobody reads any more.
///
/// Memory that comes from the system for each page and goes back to it costs a fifth of the time of reading.
#[derive(Clone, Default)]
pub(crate) struct Unpacker(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    zstd: Decompressor<'static>,
    spare: Vec<Vec<u8>>,
}

impl Unpacker {
    /// Returns the first `plain` bytes of a page as they are, and the rest decompressed: `size` bytes.
    ///
    /// # Errors
    /// If the page is damaged or of another size.
    pub(crate) fn unpack(&self, page: &[u8], plain: usize, size: usize) -> Result<Bytes> {
        let wrong = || ParquetError::General(format!("a page with {plain} of {size} bytes not compressed"));
        let (head, packed) = page.split_at_checked(plain).ok_or_else(wrong)?;
        let mut buffer = self.buffer(size);
        let (levels, values) = buffer.bytes[..size].split_at_mut_checked(plain).ok_or_else(wrong)?;
        levels.copy_from_slice(head);
        // A page without values may have no compressed data at all.
        let unpacked =
            if values.is_empty() { 0 } else { self.kept().zstd.decompress_to_buffer(packed, values)? };
        if unpacked != values.len() {
            return Err(ParquetError::General(format!("a page of {} bytes, not {size}", plain + unpacked)));
        }
        Ok(Bytes::from_owner(buffer))
    }

    /// Returns values whose bytes are split (BYTE_STREAM_SPLIT) with each one's bytes together (PLAIN).
    pub(crate) fn join<const WIDTH: usize>(&self, split: &[u8]) -> Bytes {
        let mut buffer = self.buffer(split.len());
        let (values, _) = buffer.bytes[..split.len()].as_chunks_mut();
        join::<WIDTH>(split, values);
        Bytes::from_owner(buffer)
    }

    /// Returns the smallest spare buffer of at least `size` bytes, or one that is new.
    fn buffer(&self, size: usize) -> Buffer {
        let spare = &mut self.kept().spare;
        let fits = (0..spare.len()).filter(|&index| spare[index].len() >= size);
        let bytes = match fits.min_by_key(|&index| spare[index].len()) {
            Some(smallest) => spare.swap_remove(smallest),
            None => {
                // It replaces a smaller one, so that spare buffers never outnumber those once in use.
                spare.pop();
                vec![0; size]
            }
        };
        Buffer { bytes, size, home: self.clone() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacker").finish_non_exhaustive()
    }
}

/// The page of the first `size` bytes, whose memory is spare when it is dropped.
struct Buffer {
    bytes: Vec<u8>,
    size: usize,
    home: Unpacker,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.size]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.bytes.len() <= KEPT_BYTES {
            self.home.kept().spare.push(std::mem::take(&mut self.bytes));
        }
    }
}

/// Values joined at once: few enough to stay in the first-level cache, enough for vector instructions.
const BLOCK: usize = 256;

/// Joins values of 4 or 8 bytes: all first bytes come first in `split`, then all second ones, and so on.
fn join<const WIDTH: usize>(split: &[u8], values: &mut [[u8; WIDTH]]) {
    let count = values.len();
    let (blocks, rest) = values.as_chunks_mut::<BLOCK>();
    let joined = blocks.len() * BLOCK;
    for (number, block) in blocks.iter_mut().enumerate() {
        let bytes = |byte: usize| split[byte * count + number * BLOCK..].first_chunk().unwrap_or(&[0; BLOCK]);
        let low = words(bytes, 0);
        let high = if WIDTH == 8 { words(bytes, 4) } else { [0; BLOCK] };
        for ((value, low), high) in block.iter_mut().zip(low).zip(high) {
            let joined = u64::from(low) | u64::from(high) << 32;
            value.copy_from_slice(&joined.to_le_bytes()[..WIDTH]);
        }
    }
    for (index, value) in rest.iter_mut().enumerate() {
        *value = array::from_fn(|byte| split[byte * count + joined + index]);
    }
}

/// Returns the four bytes of each value of a block from byte `first` on. The compiler makes it interleave
/// vectors, which takes less than half the time of moving byte by byte.
fn words<'a>(bytes: impl Fn(usize) -> &'a [u8; BLOCK], first: usize) -> [u32; BLOCK] {
    let pairs = |first| -> [u16; BLOCK] {
        let (low, high) = (bytes(first), bytes(first + 1));
        array::from_fn(|index| u16::from_le_bytes([low[index], high[index]]))
    };
    let (low, high) = (pairs(first), pairs(first + 2));
    array::from_fn(|index| u32::from(low[index]) | u32::from(high[index]) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(bytes, 1).expect("bytes are compressed")
    }

    #[test]
    fn a_page_is_its_levels_and_its_unpacked_values() {
        let page = [&b"levels"[..], &packed(&[7; 1_000])].concat();
        let unpacked = Unpacker::default().unpack(&page, 6, 1_006).expect("a page");
        assert_eq!(unpacked, [&b"levels"[..], &[7; 1_000]].concat());
        assert_eq!(Unpacker::default().unpack(b"levels", 6, 6).expect("a page"), &b"levels"[..]);
    }

    #[test]
    fn a_page_of_another_size_is_refused() {
        let unpacker = Unpacker::default();
        // The first page leaves a buffer with more room than the others may use.
        assert!(unpacker.unpack(&packed(&[7; 2_000]), 0, 2_000).is_ok());
        let page = packed(&[7; 1_000]);
        for (plain, size) in [(0, 999), (0, 1_001), (1, 1_001), (page.len() + 1, 2_000), (9, 8)] {
            assert!(unpacker.unpack(&page, plain, size).is_err(), "{plain} {size}");
        }
    }

    #[test]
    fn memory_of_dropped_pages_is_used_again_and_bounded() {
        let unpacker = Unpacker::default();
        let lengths = || unpacker.kept().spare.iter().map(Vec::len).collect::<Vec<_>>();
        for size in 1..100 {
            let pages = (unpacker.join::<4>(&vec![0; 4 * size]), unpacker.join::<4>(&[0; 4]));
            assert!(lengths().is_empty(), "{size}");
            drop(pages);
            assert_eq!(lengths().len(), 2, "{size}");
        }
        drop(unpacker.join::<4>(&[0; 4]));
        assert_eq!(lengths().len(), 2);
        drop(unpacker.join::<4>(&vec![0; KEPT_BYTES + 4]));
        assert!(lengths().iter().all(|&length| length <= KEPT_BYTES));
    }

    #[test]
    fn split_values_are_joined() {
        for count in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 100] {
            let values = (0..count as u64).map(|value| value.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let bytes = values.flat_map(u64::to_le_bytes).collect::<Vec<_>>();
            assert_eq!(Unpacker::default().join::<8>(&split::<8>(&bytes)), bytes, "{count}");
            assert_eq!(Unpacker::default().join::<4>(&split::<4>(&bytes)), bytes, "{count}");
        }
    }

    fn split<const WIDTH: usize>(bytes: &[u8]) -> Vec<u8> {
        (0..WIDTH).flat_map(|byte| bytes.iter().copied().skip(byte).step_by(WIDTH)).collect()
    }
}
