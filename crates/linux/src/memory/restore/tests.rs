use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    fn run(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    fn file(&self, name: &str, value: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, value).expect("written");
        path
    }

    fn states(&self) -> usize {
        fs::read_dir(self.run()).expect("the run directory").count()
    }
}

fn value(file: &Path) -> String {
    fs::read_to_string(file).expect("read")
}

#[test]
fn values_come_back_in_reverse_order_on_drop() {
    let place = Place::new();
    let (one, other) = (place.file("one", "0\n"), place.file("other", "always [madvise] never\n"));
    let mut restore = Restore::new(&place.run()).expect("made");
    restore.set(&one, "1").expect("set");
    restore.set(&other, "always").expect("set");
    restore.set(&one, "2").expect("set");
    assert_eq!((value(&one), value(&other), place.states()), ("2".into(), "always".into(), 1));
    let restored = restore.finish();
    assert!(restored.iter().all(|(_, outcome)| matches!(outcome, Restored::Back)), "{restored:?}");
    let order: Vec<&Path> = restored.iter().map(|(file, _)| file.as_path()).collect();
    assert_eq!(order, [&one, &other, &one]);
    assert_eq!((value(&one), value(&other), place.states()), ("0".into(), "madvise".into(), 0));
}

#[test]
fn a_panic_restores_too() {
    let place = Place::new();
    let file = place.file("one", "old");
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut restore = Restore::new(&place.run()).expect("made");
        restore.set(&file, "new").expect("set");
        assert_eq!(value(&file), "new");
        panic!("planned");
    }));
    assert!(result.is_err());
    assert_eq!((value(&file), place.states()), ("old".into(), 0));
}

#[test]
fn what_somebody_else_changed_since_stays() {
    let place = Place::new();
    let file = place.file("one", "old");
    let mut restore = Restore::new(&place.run()).expect("made");
    restore.set(&file, "ours").expect("set");
    fs::write(&file, "theirs").expect("written");
    let restored = restore.finish();
    assert!(matches!(&restored[..], [(_, Restored::Overridden(now))] if now == "theirs"), "{restored:?}");
    assert_eq!(value(&file), "theirs");
}

#[test]
fn a_value_that_is_in_force_already_is_nobodys_change() {
    let place = Place::new();
    let file = place.file("one", "same\n");
    let mut restore = Restore::new(&place.run()).expect("made");
    restore.set(&file, "same").expect("set");
    assert!(restore.finish().is_empty());
    assert_eq!(value(&file), "same\n");
}

#[test]
fn what_cannot_be_changed_is_named_and_nothing_is_recorded() {
    let place = Place::new();
    let mut restore = Restore::new(&place.run()).expect("made");
    let error = restore.set(&place.directory.path().join("none"), "1").expect_err("no such file");
    assert!(error.to_string().contains("none"), "{error}");
    drop(restore);
    assert_eq!(place.states(), 0);
}

#[test]
fn the_old_value_is_recorded_before_the_new_one_is_written() {
    let place = Place::new();
    let mut restore = Restore::new(&place.run()).expect("made");
    // Readable, but refuses what is no number, so that only the first half is done.
    let file = Path::new("/proc/self/oom_score_adj");
    assert!(restore.set(file, "nonsense").is_err());
    let state = fs::read_dir(place.run()).expect("listed").flatten().next().expect("a state file");
    let expected = format!("{}\t{}\n", file.display(), read_value(file).expect("read"));
    assert_eq!(value(&state.path()), expected);
    assert!(matches!(&restore.finish()[..], [(_, Restored::Back)]));
}

#[test]
fn a_failed_restoration_is_told_and_kept_for_later() {
    let place = Place::new();
    let file = place.file("one", "old");
    let mut restore = Restore::new(&place.run()).expect("made");
    restore.set(&file, "new").expect("set");
    fs::remove_file(&file).expect("removed");
    let restored = restore.finish();
    assert!(matches!(&restored[..], [(_, Restored::Failed(error))] if error.to_string().contains("one")));
    assert_eq!(place.states(), 1);
    fs::write(&file, "new").expect("written");
    recover(&place.run()).expect("recovered");
    assert_eq!((value(&file), place.states()), ("old".into(), 0));
}

#[test]
fn recovery_leaves_the_living_and_restores_after_the_dead() {
    let place = Place::new();
    let [alive, dead, torn] = ["alive", "dead", "torn"].map(|name| place.file(name, "old"));
    let mut restore = Restore::new(&place.run()).expect("made");
    restore.set(&alive, "new").expect("set");
    // Killed between the record and the second record, and within the next record.
    fs::write(&dead, "new").expect("written");
    let state = format!("{}\told\n{}\tol", dead.display(), torn.display());
    fs::write(place.run().join("restore-1-1"), state).expect("written");
    let restored = recover(&place.run()).expect("recovered");
    assert!(matches!(&restored[..], [(file, Restored::Back)] if *file == dead), "{restored:?}");
    assert_eq!((value(&alive), value(&dead), place.states()), ("new".into(), "old".into(), 1));
    assert!(recover(&place.run()).expect("recovered").is_empty());
    drop(restore);
    assert_eq!(value(&alive), "old");
}

#[test]
fn a_run_directory_that_others_can_write_to_is_not_trusted() {
    let place = Place::new();
    fs::create_dir(place.run()).expect("made");
    fs::set_permissions(place.run(), fs::Permissions::from_mode(0o777)).expect("mode");
    assert!(Restore::new(&place.run()).is_err());
    assert!(recover(&place.run()).is_err());
    assert!(recover(&place.directory.path().join("none")).expect("nothing to do").is_empty());
}
