//! Packed inputs for the tests of importers, and what is the same for all of them.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use isotherm_trace::Rows;
use lz4_flex::frame::FrameEncoder;
use lzma_rust2::{XzOptions, XzWriter};

use crate::Imported;

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("written");
    encoder.finish().expect("packed")
}

pub(crate) fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("written");
    encoder.finish().expect("packed")
}

pub(crate) fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).expect("written");
    encoder.finish().expect("packed")
}

pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).expect("a writer");
    encoder.write_all(bytes).expect("written");
    encoder.finish().expect("packed")
}

/// How a zip holds a file.
#[derive(Clone, Copy)]
pub(crate) enum Holds {
    Stored,
    Deflated,
    /// With its checksum and sizes behind it, with a signature before them or not.
    DeflatedUnsized(bool),
}

/// Returns a zip of files. The directory at its end is one of no files, since it is not read.
pub(crate) fn zip(files: &[(&[u8], Holds)]) -> Vec<u8> {
    let mut zip = Vec::new();
    for &(bytes, holds) in files {
        let packed = match holds {
            Holds::Stored => bytes.to_vec(),
            _ => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(bytes).expect("written");
                encoder.finish().expect("packed")
            }
        };
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        let mut sums = crc.sum().to_le_bytes().to_vec();
        sums.extend((packed.len() as u32).to_le_bytes());
        sums.extend((bytes.len() as u32).to_le_bytes());
        let descriptor = matches!(holds, Holds::DeflatedUnsized(_));
        zip.extend(b"PK\x03\x04\x14\x00");
        zip.extend(if descriptor { [8, 0] } else { [0, 0] });
        zip.extend(if matches!(holds, Holds::Stored) { [0, 0] } else { [8, 0] });
        zip.extend([0; 4]);
        zip.extend(if descriptor { vec![0; 12] } else { sums.clone() });
        zip.extend([5, 0, 3, 0]);
        zip.extend(b"chunkxxx");
        zip.extend(packed);
        if let Holds::DeflatedUnsized(signed) = holds {
            zip.extend(if signed { &b"PK\x07\x08"[..] } else { &[] });
            zip.extend(sums);
        }
    }
    zip.extend(b"PK\x01\x02");
    zip
}

/// Checks that bytes cut off anywhere but at the start are refused in one line that says what was expected.
pub(crate) fn is_whole(import: impl Fn(&[u8]) -> Imported, bytes: &[u8]) {
    for length in 1..bytes.len() {
        let message = import(&bytes[..length]).expect_err(&format!("{length} bytes")).to_string();
        assert!(!message.contains('\n') && message.contains("expected "), "{length} bytes: {message}");
    }
}

pub(crate) fn rows(imported: Imported) -> Rows {
    imported.expect("rows").0
}

#[test]
fn a_zip_is_read_however_it_holds_its_files_and_checked() {
    use crate::champsim::{champsim, instruction};
    let bytes = [instruction(&[], &[], &[64], &[]), instruction(&[], &[], &[], &[128])].concat();
    let plain = rows(champsim(&bytes));
    assert_eq!(plain.len(), 2);
    let (first, second) = bytes.split_at(64);
    let all = [Holds::Stored, Holds::Deflated, Holds::DeflatedUnsized(false), Holds::DeflatedUnsized(true)];
    for holds in all {
        let zip = zip(&[(first, holds), (&[], Holds::Stored), (second, holds)]);
        assert_eq!(rows(champsim(&zip)), plain);
        is_whole(champsim, &zip);
        let checksum = zip.windows(4).position(|bytes| {
            let mut crc = flate2::Crc::new();
            crc.update(first);
            bytes == crc.sum().to_le_bytes()
        });
        let mut other = zip.clone();
        other[checksum.expect("a checksum")] ^= 1;
        let message = champsim(&other).expect_err("another file").to_string();
        assert!(
            message.contains("the zip data are damaged or of a rare kind (a file's checksum differs)"),
            "{message}"
        );
    }
    let mut encrypted = zip(&[(first, Holds::Stored)]);
    encrypted[6] |= 1;
    let message = champsim(&encrypted).expect_err("encrypted").to_string();
    assert_eq!(
        message,
        "record 0: cannot read: the zip data are damaged or of a rare kind (a file is encrypted); expected a whole file"
    );
}

/// The header of a block may claim a dictionary of 4 GiB.
#[test]
fn xz_that_needs_much_memory_is_refused() {
    let mut packed = xz(&[0; 64]);
    // Behind the stream's header of 12 bytes: the block's size, flags, filter (0x21) and its properties.
    let header = 12..12 + (usize::from(packed[12]) + 1) * 4;
    assert_eq!(packed[header.start + 2..header.start + 4], [0x21, 1]);
    packed[header.start + 4] = 40;
    let mut crc = flate2::Crc::new();
    crc.update(&packed[header.start..header.end - 4]);
    packed[header.end - 4..header.end].copy_from_slice(&crc.sum().to_le_bytes());
    let message = crate::champsim::champsim(&packed).expect_err("too much").to_string();
    let expected = "record 0: cannot read: the xz data need too much memory; expected at most 128 MiB";
    assert_eq!(message, expected);
}
