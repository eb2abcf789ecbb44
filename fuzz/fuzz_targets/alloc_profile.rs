//! Any words in the allocator's file, which a program may change as it likes, give a profile or an error.

#![no_main]

use isotherm_alloc_profile::{Profile, layout as at};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static WORDS: std::cell::RefCell<Vec<u64>> = std::cell::RefCell::new(vec![0; at::WORDS]);
}

fuzz_target!(|changes: Vec<(u32, u64)>| {
    let bytes: Vec<u8> = WORDS.with_borrow_mut(|words| {
        words.fill(0);
        (words[at::MAGIC_AT], words[at::VERSION_AT]) = (at::MAGIC, at::VERSION);
        for &(place, value) in &changes {
            words[place as usize % at::WORDS] = value;
        }
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    });
    if let Ok(profile) = Profile::parse(&bytes) {
        assert_eq!(profile.live().len(), profile.contexts.len());
        assert!(profile.regions.iter().all(|region| region.fragmentation() <= 1.0));
        profile.heat([(4096, 1.0)]);
    }
});
