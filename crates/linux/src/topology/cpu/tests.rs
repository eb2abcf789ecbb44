use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Cases: vendor_id, family, model, stepping and expected name.
const X86: &str = "
GenuineIntel   6  63  2 haswell
GenuineIntel   6  79  1 broadwell
GenuineIntel   6  94  3 skylake-client
GenuineIntel   6  85  4 skylake-sp
GenuineIntel   6  85  7 cascade-lake
GenuineIntel   6  85 11 cooper-lake
GenuineIntel   6 106  6 ice-lake-sp
GenuineIntel   6 108  1 ice-lake-sp
GenuineIntel   6 140  1 ice-lake-client
GenuineIntel   6 143  8 sapphire-rapids
GenuineIntel   6 207  2 emerald-rapids
GenuineIntel   6 173  1 granite-rapids
GenuineIntel   6 174  1 granite-rapids
GenuineIntel   6 175  3 sierra-forest
GenuineIntel   6 221  0 clearwater-forest
GenuineIntel   6 151  2 intel-hybrid
GenuineIntel  15   6  4 unknown
GenuineIntel   6  26  5 unknown
AuthenticAMD  23   1  2 zen1
HygonGenuine  24   0  1 zen1
AuthenticAMD  23  49  0 zen2
AuthenticAMD  25   1  1 zen3
AuthenticAMD  25  80  0 zen3
AuthenticAMD  25  17  1 zen4
AuthenticAMD  25 160  2 zen4
AuthenticAMD  26   2  1 zen5
AuthenticAMD  26  80  0 zen6
AuthenticAMD  16  10  0 unknown
CentaurHauls   6  15  3 unknown
";

/// Cases: implementer, part and expected name.
const ARM: &str = "
0x41 0xd0c neoverse-n1
0x41 0xd40 neoverse-v1
0x41 0xd49 neoverse-n2
0x41 0xd4f neoverse-v2
0x41 0xd8e neoverse-n3
0x41 0xd84 neoverse-v3
0xc0 0xac3 ampere-one
0x41 0xd08 unknown
0x48 0xd01 unknown
";

fn x86_text(row: &[&str], flags: &str) -> String {
    let [vendor, family, model, stepping, ..] = row else { panic!("a row of five columns") };
    let one = |processor: u32| {
        format!(
            "processor\t: {processor}\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n\
             model name\t: A: name\nstepping\t: {stepping}\nflags\t\t: fpu {flags}\npower management:\n"
        )
    };
    format!("{}\n{}\n", one(0), one(1))
}

#[test]
fn x86_processors_are_named_by_family_model_and_stepping() {
    for row in X86.trim().lines() {
        let columns: Vec<&str> = row.split_whitespace().collect();
        let cpu = Cpu::parse(&x86_text(&columns, "sse")).expect(row);
        assert_eq!(cpu.microarchitecture.name(), columns[4], "{row}");
        assert_eq!((cpu.name.as_str(), cpu.virtualized), ("A: name", false));
        assert_eq!(cpu.stepping.to_string(), columns[3]);
    }
}

#[test]
fn arm_processors_are_named_by_implementer_and_part() {
    for row in ARM.trim().lines() {
        let columns: Vec<&str> = row.split_whitespace().collect();
        let text = format!(
            "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\nCPU implementer\t: {}\nCPU architecture: 8\n\
             CPU variant\t: 0x3\nCPU part\t: {}\nCPU revision\t: 1\n",
            columns[0], columns[1]
        );
        let cpu = Cpu::parse(&text).expect(row);
        assert_eq!((cpu.microarchitecture.name(), cpu.name.as_str()), (columns[2], columns[2]), "{row}");
        assert_eq!(cpu.stepping, 1);
    }
}

#[test]
fn a_hypervisor_is_noticed_and_a_hidden_stepping_is_none() {
    let cpu = Cpu::parse(&x86_text(&["GenuineIntel", "6", "85", "unknown"], "sse hypervisor")).unwrap();
    assert!(cpu.virtualized);
    assert_eq!((cpu.stepping, cpu.microarchitecture), (0, Model::SkylakeSp));
}

#[test]
fn a_file_without_a_processor_is_an_error_that_names_it() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("proc")).unwrap();
    std::fs::write(root.path().join("proc/cpuinfo"), "vendor_id : GenuineIntel\ncpu family : six\n").unwrap();
    let message = Cpu::read(root.path()).unwrap_err().to_string();
    assert!(
        message.contains("cpuinfo: expected a processor's vendor and model, found 'vendor_id"),
        "{message}"
    );
}

#[test]
fn this_machine_has_a_processor() {
    let cpu = Cpu::read(Path::new("/")).unwrap();
    assert!(!cpu.name.is_empty());
}

#[test]
fn names_are_unique_and_those_of_json() {
    let names: BTreeSet<&str> = Model::ALL.iter().map(|model| model.name()).collect();
    assert_eq!(names.len(), Model::ALL.len());
    for model in Model::ALL {
        assert_eq!(serde_json::to_string(model).unwrap(), format!("\"{model}\""));
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(
        text in "((vendor_id|cpu family|model|stepping|CPU part|CPU implementer|x)?[\t ]?:? ?[0-9a-zA-Z:]{0,12}\n){0,8}"
    ) {
        let _ = Cpu::parse(&text);
    }
}
