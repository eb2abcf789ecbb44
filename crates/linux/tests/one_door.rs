//! Every `unsafe` of this crate is below `src/sys`.

use std::fs;
use std::path::Path;

/// Calls `see` with each Rust source below the directory, and its path relative to `root`.
fn sources(root: &Path, directory: &Path, see: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(root, &path, see);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            see(path.strip_prefix(root).expect("below the root"), &text);
        }
    }
}

#[test]
fn unsafe_code_is_below_sys_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut found, mut doors) = (Vec::new(), Vec::new());
    sources(&root, &root, &mut |path, text| {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or(line);
            let mut words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let place = || format!("{}:{}", path.display(), number + 1);
            match words.find(|word| matches!(*word, "unsafe" | "unsafe_code")) {
                Some("unsafe") if !path.starts_with("sys") => found.push(place()),
                Some("unsafe_code") if !path.starts_with("sys") => doors.push(place()),
                _ => {}
            }
        }
    });
    assert_eq!(found, Vec::<String>::new(), "move these into src/sys");
    assert!(doors.len() == 1 && doors[0].starts_with("lib.rs:"), "only `mod sys` may allow it: {doors:?}");
}
