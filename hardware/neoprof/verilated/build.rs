//! Translates the hardware description into C++ with verilator, once per set of sizes, and compiles it with
//! the shim.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A set of sizes: its name, the top module's parameters that differ from the paper's, channels and address
/// bits.
struct Variant {
    name: &'static str,
    parameters: &'static [&'static str],
    channels: u32,
    address_bits: u32,
}

/// `src/variant.rs` states the same sizes; a test compares them with the registers.
const VARIANTS: [Variant; 3] = [
    Variant { name: "paper", parameters: &["MONOLITHIC=1'b1"], channels: 2, address_bits: 32 },
    Variant {
        name: "small",
        parameters: &[
            "LANES=3",
            "INDEX_BITS=8",
            "COUNTER_BITS=5",
            "ADDRESS_BITS=20",
            "ENTRY_BITS=4",
            "BINS=16",
            "CHANNELS=3",
            "SEGMENT_BITS=3",
            "HOT_SEGMENT_BITS=2",
            "LATENCY=4",
            "HASH_SEED=64'd7",
        ],
        channels: 3,
        address_bits: 20,
    },
    Variant {
        name: "single",
        parameters: &[
            "LANES=1",
            "INDEX_BITS=14",
            "COUNTER_BITS=8",
            "ADDRESS_BITS=52",
            "ENTRY_BITS=6",
            "CHANNELS=1",
            "SEGMENT_BITS=2",
            "HOT_SEGMENT_BITS=0",
            "LATENCY=2",
            "HASH_SEED=64'd99",
        ],
        channels: 1,
        address_bits: 52,
    },
];

fn main() {
    let rtl = fs::canonicalize("../rtl").expect("hardware/neoprof/rtl");
    println!("cargo::rerun-if-changed={}", rtl.display());
    println!("cargo::rerun-if-changed=src/shim.cpp");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let runtime = runtime();
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .warnings(false)
        .opt_level(2)
        .include(&runtime)
        .include(runtime.join("vltstd"));
    for file in ["verilated.cpp", "verilated_threads.cpp"] {
        build.file(runtime.join(file));
    }
    for variant in &VARIANTS {
        let folder = out.join(variant.name);
        generate(&rtl, &folder, variant);
        let mut sources: Vec<PathBuf> = fs::read_dir(&folder)
            .expect("verilator's output")
            .map(|entry| entry.expect("a file").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "cpp"))
            .collect();
        sources.sort();
        build.files(sources).include(&folder);
        let shim = folder.join("shim.cc");
        fs::write(&shim, shim_of(variant)).expect("OUT_DIR can be written");
        build.file(shim);
    }
    build.compile("neoprof_rtl");
}

/// Returns the folder of verilator's runtime sources.
fn runtime() -> PathBuf {
    let output = Command::new("verilator").args(["--getenv", "VERILATOR_ROOT"]).output();
    let output = output.unwrap_or_else(|error| panic!("verilator: {error}; scripts/hw-setup.sh installs it"));
    Path::new(String::from_utf8_lossy(&output.stdout).trim()).join("include")
}

fn generate(rtl: &Path, folder: &Path, variant: &Variant) {
    let mut command = Command::new("verilator");
    command
        .args(["--cc", "--assert", "-O3", "--x-assign", "fast", "--x-initial", "fast"])
        .args(["--unroll-count", "1024", "--output-split", "20000", "--top-module", "neoprof"])
        .args(["--prefix", &format!("V{}", variant.name), "--Mdir"])
        .arg(folder)
        .arg("-y")
        .arg(rtl)
        .args(variant.parameters.iter().map(|parameter| format!("-G{parameter}")))
        .args([rtl.join("neoprof_pkg.sv"), rtl.join("neoprof.sv")]);
    let status = command.status().expect("verilator was found before");
    assert!(status.success(), "verilator refused the hardware description");
}

fn shim_of(variant: &Variant) -> String {
    let Variant { name, channels, address_bits, .. } = variant;
    let shim = fs::canonicalize("src/shim.cpp").expect("src/shim.cpp");
    format!(
        "#include \"V{name}.h\"\n#define DUT V{name}\n#define NAME(x) neoprof_{name}_##x\n\
         #define CHANNELS {channels}\n#define ADDRESS_BITS {address_bits}\n#include \"{}\"\n",
        shim.display()
    )
}
