//! Tests of machine files.

use proptest::prelude::*;

use super::*;

/// Returns a valid machine, for the tests to spoil.
fn good() -> String {
    Machine::builtin_text("two-tier").unwrap_or_default().to_owned()
}

fn error(text: &str) -> String {
    Machine::parse(text, "lab/machines/mine.toml").err().map_or_else(String::new, |error| error.to_string())
}

#[test]
fn every_builtin_machine_is_read_and_small() -> Result<(), LabError> {
    for name in Machine::builtin_names() {
        let machine = Machine::builtin(name)?;
        assert_eq!(machine.name, name);
        assert!(machine.nodes.iter().map(|node| node.size.0).sum::<u64>() < 2 << 30, "{name}");
    }
    assert!(Machine::builtin("cxl")?.has_cxl());
    Ok(())
}

#[test]
fn a_profile_written_reads_back() -> Result<(), Box<dyn std::error::Error>> {
    for name in Machine::builtin_names() {
        let machine = Machine::builtin(name)?;
        let back = Profile::parse(&machine.profile_toml(), &format!("{}.toml", machine.profile.name))?;
        assert_eq!(back, machine.profile, "{name}");
        assert_eq!(back.core.l2_registers, Some(0), "{name}: the plugin has no prefetchers");
    }
    for name in Profile::builtin_names() {
        let profile = Profile::builtin(name)?;
        assert_eq!(Profile::parse(&profile_text::write(&profile), name)?, profile, "{name}");
    }
    Ok(())
}

#[test]
fn changes_apply_with_their_source() -> Result<(), LabError> {
    let machine = Machine::builtin("two-tier")?;
    assert_eq!((machine.profile.llc_size.0, machine.profile.llc_ways), (2 << 20, 16));
    assert!(machine.profile.sources["llc.size"].starts_with("chosen"));
    Ok(())
}

#[test]
fn what_is_wrong_is_said_in_one_line_with_file_field_and_what_was_expected() {
    let cases = [
        (
            "processors = 1",
            "processors = 0",
            "guest.processors: found '0'; expected a whole number from 1 to 16",
        ),
        ("processors = 1", "processors = \"one\"", "guest.processors: found 'one'"),
        ("processors = 1", "procesors = 1", "guest.procesors: unknown field; expected one of processors"),
        ("huge_pages = \"never\"", "huge_pages = \"rarely\"", "\"never\" or \"madvise\" or \"always\""),
        ("deterministic = false", "", "guest.deterministic: is missing; expected true or false"),
        ("\"512MiB\"", "\"500MiB\"", "node.0.size: found '500MiB'; expected a multiple of 128M"),
        ("\"512MiB\"", "\"128MiB\"", "node.0: plain of 128M; expected a plain node of at least 256M"),
        ("\"1GiB\"", "\"64GiB\"", "node: 64.50G in all; expected at most 64G"),
        ("\"1GiB\"", "0", "node.1.size: found '0'"),
        (
            "kind = \"plain\"\nsize = \"512MiB\"",
            "kind = \"cxl\"\nsize = \"512MiB\"",
            "node.0: cxl of 512M; expected a plain node",
        ),
        ("[[node]]\nkind = \"plain\"\nsize = \"1GiB\"", "", "from 2 to 4 [[node]] tables"),
        ("freqtier-cxl1\"", "freqtier-cxl9\"", "did you mean freqtier-cxl1"),
        ("\"llc.size\"", "\"llc.sise\"", "unknown field llc.sise"),
        ("\"2MiB\"", "\"2 meters\"", "llc.size: '2 meters' is not a size"),
        ("title = ", "title ", "line 2"),
        (
            "[guest]",
            "[zswap]\ncompressor = \"lzo\"\n[guest]",
            "zswap.compressor: found 'lzo'; expected \"lz4\" or",
        ),
        (
            "[guest]",
            "[zswap]\ncompressor = \"lz4\"\n[guest]",
            "zswap.swap: is missing; expected a multiple of 128M",
        ),
    ];
    for (from, to, expected) in cases {
        let text = good();
        assert!(text.contains(from), "{from}");
        let error = error(&text.replacen(from, to, 1));
        assert!(error.contains(expected) && error.starts_with("lab/machines/mine.toml: "), "{to}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn tiers_of_the_profile_and_nodes_must_match() {
    let three = format!("{}\n[[node]]\nkind = \"plain\"\nsize = \"256MiB\"\n", good());
    assert!(error(&three).contains("3 nodes for the profile's 2 tiers; expected one node for each tier"));
}

#[test]
fn unknown_machines_get_advice() {
    let error = Machine::builtin("two-teir").map_err(|error| error.to_string());
    assert!(error.is_err_and(|text| text.contains("did you mean two-tier?")));
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,200}") {
        let message = error(&text);
        prop_assert!(!message.is_empty() && message.lines().count() == 1, "{message}");
    }

    #[test]
    fn a_machine_with_any_piece_missing_or_replaced_is_read_or_refused_in_one_line(
        cut in 0usize..900, length in 0usize..40, noise in "[a-z0-9=\"\\[\\]{}\\n., ]{0,8}"
    ) {
        let letters: Vec<char> = good().chars().collect();
        let (start, end) = (cut.min(letters.len()), (cut + length).min(letters.len()));
        let text: String = letters[..start].iter().chain(noise.chars().collect::<Vec<_>>().iter()).chain(&letters[end..]).collect();
        prop_assert!(error(&text).lines().count() <= 1);
    }
}
