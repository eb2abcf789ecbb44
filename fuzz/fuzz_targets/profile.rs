//! Any text as a machine profile gives a valid, printable profile or one line of error, and never a panic.

#![no_main]

use std::fs;
use std::path::PathBuf;

use isotherm_machine::Profile;
use libfuzzer_sys::fuzz_target;

/// Puts Isotherm's own profiles into the corpus, and one of each kind of base.
fn seed() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let corpus = root.join("corpus/profile");
    fs::create_dir_all(&corpus).expect("a corpus directory");
    for entry in fs::read_dir(root.join("../machines")).expect("the profiles") {
        let file = entry.expect("an entry").path();
        if file.is_file() {
            fs::copy(&file, corpus.join(file.file_name().expect("a file"))).expect("copied");
        }
    }
    for base in ["pact", "fuzz.toml", "/etc/passwd"] {
        fs::write(corpus.join(base.replace('/', "-")), format!("base = \"{base}\"\n[[tier]]\n"))
            .expect("written");
    }
}

fuzz_target!(init: seed(), |text: &str| {
    match Profile::parse(text, "fuzz.toml") {
        Ok(profile) => {
            assert_eq!(profile.name, "fuzz");
            profile.check().expect("what was parsed is valid");
            assert!(!profile.summary().numbers.is_empty());
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains("fuzz.toml"), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
});
