//! The example of `docs/guide/adding-a-policy.md`: it compiles, works, and equals the document's text.

mod support;
#[path = "../../../docs/guide/examples/twice.rs"]
#[rustfmt::skip]
mod twice;

use isotherm_policies::Entry;
use support::{input, numbers, plain_machine, run, run_entries, stream};

const PAGES: u32 = 4096;
const SOURCE: &str = include_str!("../../../docs/guide/examples/twice.rs");
const DOCUMENT: &str = include_str!("../../../docs/guide/adding-a-policy.md");

static TWICE: Entry =
    Entry::policy("twice", "Twice", twice::Settings::SPECS, &|p, s| Ok(Box::new(twice::Twice::new(p, s))))
        .paper("an example")
        .help("Promotes pages that were sampled twice within a window.");

#[test]
fn the_document_shows_the_example_as_it_is_and_it_is_short() {
    assert!(
        DOCUMENT.contains(SOURCE),
        "docs/guide/adding-a-policy.md must hold docs/guide/examples/twice.rs as it is"
    );
    assert!(SOURCE.lines().count() <= 60);
}

#[test]
fn the_example_finds_a_hot_set_that_first_touch_misplaced() {
    let mut random = numbers(3, 1 << 30);
    // All pages once in order, so that the hot set at the end of the address space lands in the slow tier.
    let page = move |index: u32| match index {
        0..PAGES => index,
        _ if random().is_multiple_of(10) => random() % PAGES,
        _ => PAGES - 1 - random() % (PAGES / 16),
    };
    let input = input(stream((0..2_000_000).map(page), PAGES, 20, 1));
    let machine = plain_machine();
    let hits = |report: isotherm_sim::Report| report.runs[0].final_hit_ratio;
    let twice = hits(run_entries(&input, &machine, vec![(&TWICE, TWICE.parameters())], &["20%"], 1000.0));
    let first_touch = hits(run(&input, &machine, &["first-touch"], &["20%"], 1000.0));
    assert!(first_touch < 0.1, "{first_touch}");
    assert!(twice > 0.9 * (0.9 + 0.1 * 0.2), "{twice}");
}
