//! The view drawn on a terminal of the tests, operated by keys.

use isotherm_core::live_result::Traffic;
use isotherm_core::machine_status::{GroupStatus, MachineStatus, MappingStatus, ProgramStatus};
use isotherm_core::{Bytes, Nanos};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::draw::draw;
use super::feed::News;
use super::view::{Action, Place, View};

const GIB: u64 = 1 << 30;

/// Returns a machine of two groups some seconds after the daemon's start.
fn status(second: u64) -> MachineStatus {
    let program = |pid, command: &str, fast, slow, accesses| ProgramStatus {
        pid,
        command: command.into(),
        resident_bytes: [fast, slow].map(Bytes).into(),
        accesses,
        ..ProgramStatus::default()
    };
    let database = GroupStatus {
        name: "database".into(),
        mode: "tiered".into(),
        policy: "isotherm".into(),
        weight: 2.0,
        protect_bytes: Bytes(GIB),
        limit_bytes: Some(Bytes(4 * GIB)),
        share_bytes: Bytes(3 * GIB),
        resident_bytes: [2 * GIB, 5 * GIB].map(Bytes).into(),
        // The ratio rises from 0 to all.
        hits: vec![100 * second * second, 1000 * second],
        hit_ratio: Some(0.9134),
        hit_ratio_bounds: Some([0.90, 0.93]),
        moves_per_s: 123.4,
        engine_ns: Nanos(second * 20_000_000),
        saved_ns: Nanos(second * 500_000_000),
        programs: vec![
            program(4711, "post\u{1b}gres", 2 * GIB, 4 * GIB, 81_000),
            program(4712, "pgbench", 0, GIB, 90),
        ],
        ..GroupStatus::default()
    };
    let batch = GroupStatus {
        name: "batch".into(),
        mode: "run".into(),
        policy: "tpp".into(),
        share_bytes: Bytes(GIB),
        resident_bytes: [GIB, 7 * GIB].map(Bytes).into(),
        traffic: Traffic { promotions: 300 * second, demotions: 200 * second, ..Traffic::default() },
        warnings: vec!["accessed-bits:\nthe kernel is late".into()],
        ..GroupStatus::default()
    };
    MachineStatus {
        time_ns: Nanos(second * 1_000_000_000),
        fast_bytes: Bytes(8 * GIB),
        cpu_ns: Nanos(second * 15_000_000),
        left_alone: 3,
        groups: vec![database, batch],
        ..MachineStatus::default()
    }
}

fn view() -> View {
    let mut view = View::new(status(1));
    (2..10).for_each(|second| view.take(News::Status(status(second))));
    view
}

fn press(view: &mut View, keys: &[KeyCode]) -> Vec<Action> {
    keys.iter().map(|&key| view.key(KeyEvent::new(key, KeyModifiers::NONE))).collect()
}

/// Returns the lines that the view draws, without spaces at their ends.
fn drawn(view: &View, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw(frame, view)).expect("drawn");
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

/// Returns the first words of the table's rows, from the top.
fn order(view: &View) -> Vec<String> {
    view.rows().into_iter().map(|row| row.key).collect()
}

#[track_caller]
fn looks(view: &View, golden: &str) {
    let shown = drawn(view, 110, 10).join("\n");
    assert_eq!(shown.trim_end(), golden.trim(), "drawn:\n{shown}\n");
}

#[test]
fn groups_are_rows_with_their_hit_ratios_over_time() {
    looks(&view(), include_str!("golden/groups.txt"));
}

#[test]
fn a_group_shows_its_programs_and_a_program_its_mappings_by_heat() {
    let mut view = view();
    assert_eq!(press(&mut view, &[KeyCode::Enter]), [Action::None]);
    looks(&view, include_str!("golden/group.txt"));
    let wanted = Action::Watch(Some("mappings database".into()));
    assert_eq!(press(&mut view, &[KeyCode::Enter]), [wanted]);
    let mapping = |pid, start, mib: u64, cells: Vec<(u64, u8)>| MappingStatus {
        pid,
        start,
        bytes: Bytes(mib << 20),
        resident_bytes: [mib << 19, mib << 19].map(Bytes).into(),
        cells,
    };
    view.take(News::Mappings(vec![
        mapping(4711, 0x7f00_0000_0000, 64, (0..64).map(|cell| (cell * cell, 100)).collect()),
        mapping(4711, 0x7f80_0000_0000, 2, vec![(0, 0), (5, 0), (1 << 20, 100)]),
        mapping(4712, 0x1000, 1, vec![(9, 0)]),
    ]));
    looks(&view, include_str!("golden/program.txt"));
    let back = press(&mut view, &[KeyCode::Esc, KeyCode::Esc, KeyCode::Esc]);
    assert_eq!((back[0] == Action::Watch(None), &view.place), (true, &Place::Groups));
}

#[test]
fn three_tiers_and_swap_have_a_figure_each() {
    let mut view = view();
    let mut status = status(10);
    status.groups[0].resident_bytes.push(Bytes(GIB / 2));
    status.groups[0].programs[0].resident_bytes.push(Bytes(GIB / 2));
    view.take(News::Status(status));
    let row = |view: &View, start: &str| -> String {
        drawn(view, 110, 10).into_iter().find(|line| line.trim_start().starts_with(start)).expect("a row")
    };
    assert!(row(&view, "database").contains(" 5G+512M "), "{}", row(&view, "database"));
    press(&mut view, &[KeyCode::Enter]);
    assert!(row(&view, "4711").contains(" 4G+512M "), "{}", row(&view, "4711"));
    let mut status = self::status(10);
    status.groups[0].programs[0].swapped_bytes = Bytes(GIB);
    view.take(News::Status(status));
    assert!(row(&view, "4711").contains(" 4G+1G swapped "), "{}", row(&view, "4711"));
}

#[test]
fn columns_sort_both_ways_and_the_choice_follows_its_row() {
    let mut view = view();
    assert_eq!(order(&view), ["database", "batch"], "as the daemon lists them");
    press(&mut view, &[KeyCode::Right]);
    assert_eq!(order(&view), ["batch", "database"], "by name");
    assert_eq!(view.selected(), 0);
    press(&mut view, &[KeyCode::Down]);
    assert_eq!(view.group().map(|group| &*group.name), Some("database"));
    press(&mut view, &[KeyCode::Char('r')]);
    assert_eq!((order(&view)[0].as_str(), view.selected()), ("database", 0));
    // By slow memory, the most first.
    press(&mut view, &[KeyCode::Right; 5]);
    assert_eq!((order(&view)[0].as_str(), view.selected()), ("batch", 1));
    assert!(drawn(&view, 110, 10)[3].contains("slow ▼"), "{:?}", drawn(&view, 110, 10));
    press(&mut view, &[KeyCode::Left; 6]);
    assert_eq!(view.sort(), (None, false));
    // The run of the last group counts its own moves.
    assert_eq!(view.moves_per_s(&view.status.groups[1]), 500.0);
}

#[test]
fn a_change_is_typed_confirmed_and_sent() {
    let mut view = view();
    press(&mut view, &[KeyCode::Char('l')]);
    press(&mut view, &[KeyCode::Backspace; 2]);
    press(&mut view, &[KeyCode::Char('6'), KeyCode::Char('G')]);
    assert!(drawn(&view, 110, 10).iter().any(|line| line.contains("Limit of database: 6G_")));
    assert_eq!(press(&mut view, &[KeyCode::Enter]), [Action::None], "not without a confirmation");
    let asked = drawn(&view, 110, 10).join("\n");
    assert!(asked.contains("Set the limit of database to 6G?"), "{asked}");
    let order = Action::Order("group database limit 6G".into());
    assert_eq!(press(&mut view, &[KeyCode::Char('y')]), [order]);
    view.take(News::Ordered(Err("expected a size".into())));
    assert_eq!(drawn(&view, 110, 10)[9], "expected a size");

    // Anything else than a yes changes nothing; Esc leaves before.
    for last in [KeyCode::Char('n'), KeyCode::Enter, KeyCode::Char('q')] {
        let actions = press(&mut view, &[KeyCode::Char('p'), KeyCode::Down, KeyCode::Enter, last]);
        assert_eq!(actions, [const { Action::None }; 4], "{last:?}");
        assert!(view.dialog.is_none());
    }
    press(&mut view, &[KeyCode::Char('p'), KeyCode::Esc]);
    assert!(view.dialog.is_none());
    // A policy is chosen from the list.
    press(&mut view, &[KeyCode::Char('p'), KeyCode::Down, KeyCode::Enter]);
    let actions = press(&mut view, &[KeyCode::Char('y')]);
    let [Action::Order(line)] = &actions[..] else { panic!("{actions:?}") };
    let policy = line.strip_prefix("group database policy ").expect("an order");
    assert!(policy != "isotherm" && isotherm_policies::find(policy).is_ok(), "{policy}");
    // A run that has joined is not the daemon's to change.
    press(&mut view, &[KeyCode::Down, KeyCode::Char('l')]);
    assert!(view.dialog.is_none() && view.message.as_ref().is_some_and(|why| why.contains("--socket")));
    press(&mut view, &[KeyCode::Enter]);
    assert!(drawn(&view, 110, 10)[4].starts_with("batch has an engine of its own"));
}

#[test]
fn one_run_is_one_group_that_is_addressed_without_a_name() {
    let mut status = status(5);
    status.groups.truncate(1);
    status.groups[0].mode = "alone".into();
    let mut view = View::new(status);
    press(&mut view, &[KeyCode::Char('l'), KeyCode::Enter]);
    assert_eq!(press(&mut view, &[KeyCode::Char('y')]), [Action::Order("limit 4G".into())]);
    let actions = press(&mut view, &[KeyCode::Enter, KeyCode::Enter]);
    assert_eq!(actions[1], Action::Watch(Some("mappings".into())));
    assert!(drawn(&view, 110, 10)[0].contains("engine"), "not a daemon");
}

#[test]
fn q_and_control_c_quit_and_what_is_gone_is_no_panic() {
    let mut view = view();
    assert_eq!(press(&mut view, &[KeyCode::Char('q')]), [Action::Quit]);
    assert_eq!(view.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Action::Quit);
    press(&mut view, &[KeyCode::Enter, KeyCode::Down, KeyCode::Enter]);
    assert_eq!(view.place, Place::Program("database".into(), 4712));
    view.take(News::Status(MachineStatus::default()));
    for (width, height) in [(110, 10), (20, 4), (1, 1)] {
        drawn(&view, width, height);
    }
    press(
        &mut view,
        &[KeyCode::Char('p'), KeyCode::Down, KeyCode::Enter, KeyCode::Esc, KeyCode::Enter, KeyCode::Esc],
    );
    assert_eq!(
        press(&mut view, &[KeyCode::Enter, KeyCode::Up, KeyCode::Char('l')]),
        [const { Action::None }; 3]
    );
    view.take(News::Lost("the daemon has closed the connection".into()));
    assert_eq!(drawn(&view, 60, 5)[4], "the daemon has closed the connection");
}
