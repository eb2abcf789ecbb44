//! The manifest of a result: what it was made from and where, beside what the result itself tells.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::Bytes;

/// Hash that tells whether two files or inputs are the same. It protects against no forgery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fingerprint {
    /// Of the contents (XXH64).
    Contents(u64),
    /// Of an executable, as its linker noted it (GNU build id).
    Build(Vec<u8>),
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contents(hash) => write!(f, "xxh64:{hash:016x}"),
            Self::Build(id) => {
                f.write_str("build:")?;
                id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Origin of a result. What only a real machine has is `None` in a simulation, whose result depends on none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// Of the binary that made the result; `None` for an engine inside a program.
    pub binary: Option<Fingerprint>,
    /// Of the replayed accesses, or of the program's file; `None` where neither is known.
    pub input: Option<Fingerprint>,
    /// The modelled or virtual machine's name, or the processor and the number of its threads.
    pub machine: String,
    /// Release of the kernel under the program.
    pub kernel: Option<String>,
    /// Fast memory that was free when the program started.
    pub free_dram_bytes: Option<Bytes>,
    /// Of the libraries that policies were loaded from, by the policies' names.
    pub policy_libraries: BTreeMap<String, Fingerprint>,
    /// Options in force that no other field of the result tells.
    pub options: BTreeMap<&'static str, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_names_its_algorithm_and_has_all_digits() {
        assert_eq!(Fingerprint::Contents(0x1f).to_string(), "xxh64:000000000000001f");
        assert_eq!(Fingerprint::Build(vec![0xc4, 0x03]).to_string(), "build:c403");
    }
}
