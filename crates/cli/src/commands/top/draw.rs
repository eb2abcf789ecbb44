//! Draws the view.

use isotherm_core::machine_status::{GroupStatus, MappingStatus};
use isotherm_report::machine_line;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table, TableState};

use super::rows::Cell;
use super::view::{Dialog, Place, View, elsewhere};
use crate::output::one_line;

/// Bars from nothing to the most.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Most lines of warnings.
const MAX_WARNINGS: usize = 3;
/// Least width of a strip or a sparkline.
const MIN_PICTURE: usize = 8;

pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let head = head(view, usize::from(frame.area().width));
    let parts = [Constraint::Length(head.len() as u16 + 1), Constraint::Min(2), Constraint::Length(1)];
    let [top, middle, bottom] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(head), top);
    table(frame, view, middle);
    frame.render_widget(Paragraph::new(foot(view)), bottom);
    if let Some(dialog) = &view.dialog {
        ask(frame, dialog);
    }
}

/// Returns the lines above the table.
fn head(view: &View, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(machine_line(&view.status)).bold()];
    let mut warnings: Vec<String> =
        view.status.rivals.iter().map(|rival| format!("rival: {}", one_line(rival))).collect();
    warnings.extend(view.status.log_warning().map(|warning| one_line(&warning).into_owned()));
    match (&view.place, view.group()) {
        (Place::Groups, _) => {
            let all = view.status.groups.iter();
            warnings.extend(all.flat_map(warnings_of));
        }
        (Place::Group(_), Some(group)) => {
            lines.extend(described(view, group).map(Line::from));
            let title = "hit ratio, 0 to 100 %: ";
            let ratios = view.ratios(&group.name);
            let room = width.saturating_sub(title.len());
            lines.push(Line::from(vec![Span::raw(title), Span::raw(spark(&ratios, room)).cyan()]));
            warnings = elsewhere(group).into_iter().chain(warnings_of(group)).collect();
        }
        (Place::Program(name, pid), group) => {
            let program = view.program().map(|program| program.command.as_str()).unwrap_or("ended");
            lines.push(Line::from(format!("{} > {pid} {}", one_line(name), one_line(program))));
            lines.push(legend(view));
            let refused = view.program().and_then(|program| program.refused.clone());
            warnings =
                refused.into_iter().chain(group.is_none().then(|| "the group is gone".into())).collect();
        }
        (Place::Group(name), None) => lines.push(Line::from(format!("{}: gone", one_line(name)))),
    }
    let more = warnings.len().saturating_sub(MAX_WARNINGS);
    lines.extend(warnings.into_iter().take(MAX_WARNINGS).map(|warning| Line::from(warning).yellow()));
    if more > 0 {
        lines.push(Line::from(format!("{more} more warnings: isotherm top --once")).yellow());
    }
    lines
}

fn warnings_of(group: &GroupStatus) -> Vec<String> {
    let say = |warning: &String| format!("{}: {}", one_line(&group.name), one_line(warning));
    group.warnings.iter().map(say).collect()
}

/// Returns the group's settings in a line, and its figures in another.
fn described(view: &View, group: &GroupStatus) -> [String; 2] {
    let limit = group.limit_bytes.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
    let hits = match (group.hit_ratio, group.hit_ratio_bounds) {
        (Some(hits), Some([low, high])) => {
            format!("{:.1} % ({:.0}-{:.0})", 100.0 * hits, 100.0 * low, 100.0 * high)
        }
        (Some(hits), None) => format!("{:.1} %", 100.0 * hits),
        (None, _) => "unknown".into(),
    };
    let settings = format!(
        "{}: {}, {}, share {}, protect {}, limit {limit}, weight {}",
        one_line(&group.name),
        group.mode,
        one_line(&group.policy),
        group.share_bytes,
        group.protect_bytes,
        group.weight,
    );
    let figures = format!(
        "hits {hits}, {:.0} moves/s, cost {:.2} s, saved at most {:.2} s",
        view.moves_per_s(group),
        (group.engine_ns + group.observing_ns).as_seconds(),
        group.saved_ns.as_seconds(),
    );
    [settings, figures]
}

fn legend(view: &View) -> Line<'static> {
    Line::from(vec![
        Span::raw(format!("heat: sampled accesses a MiB, logarithmic from ▁ 1 to █ {:.0}; ", hottest(view))),
        Span::raw("fast").style(memory(100)),
        Span::raw(" and "),
        Span::raw("slow").style(memory(0)),
        Span::raw(" memory"),
    ])
}

/// Returns the style of memory by its percentage on the fast tier.
fn memory(fast: u8) -> Style {
    Style::new().fg(if fast >= 50 { Color::Cyan } else { Color::Yellow })
}

fn hottest(view: &View) -> f64 {
    let rows = view.rows();
    let cells = rows.iter().flat_map(|row| &row.cells);
    let heat = cells.flat_map(|cell| if let Cell::Heat(parts) = cell { &parts[..] } else { &[] });
    heat.fold(1.0, |most, part| part.0.max(most))
}

fn table(frame: &mut Frame<'_>, view: &View, area: Rect) {
    let (rows, header, (sort, turned)) = (view.rows(), view.header(), view.sort());
    let pictured = |column: usize| {
        matches!(rows.first().map(|row| &row.cells[column]), Some(Cell::Ratios(_) | Cell::Heat(_)))
    };
    let text = |column: usize| {
        let arrow = if turned { " ▲" } else { " ▼" };
        format!("{}{}", header[column], if sort == Some(column) { arrow } else { "" })
    };
    let width = |column: usize| {
        let cells = rows.iter().map(|row| match &row.cells[column] {
            Cell::Text(text) | Cell::Number(_, text) => text.chars().count(),
            Cell::Ratios(_) | Cell::Heat(_) => MIN_PICTURE,
        });
        cells.chain([text(column).chars().count()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..header.len()).map(width).collect();
    let last = header.len() - 1;
    if pictured(last) {
        let used: usize = widths[..last].iter().map(|width| width + 2).sum();
        let room = usize::from(area.width).saturating_sub(used);
        widths[last] = room.clamp(MIN_PICTURE, MappingStatus::MAX_CELLS);
    }
    let hottest = hottest(view);
    let cell = |(column, cell): (usize, &Cell)| match cell {
        Cell::Text(text) => Line::from(text.clone()),
        Cell::Number(_, text) => Line::from(text.clone()).right_aligned(),
        Cell::Ratios(ratios) => Line::from(spark(ratios, widths[column])).cyan(),
        Cell::Heat(parts) => strip(parts, widths[column], hottest),
    };
    let number = |column: usize| matches!(rows.first().map(|row| &row.cells[column]), Some(Cell::Number(..)));
    let title = |column: usize| {
        let line = Line::from(text(column));
        if number(column) { line.right_aligned() } else { line }
    };
    let body = rows.iter().map(|row| Row::new(row.cells.iter().enumerate().map(cell).collect::<Vec<_>>()));
    let shown = Table::new(body, widths.iter().map(|&width| Constraint::Length(width as u16)))
        .header(Row::new((0..header.len()).map(title).collect::<Vec<_>>()).underlined())
        .column_spacing(2)
        .row_highlight_style(Style::new().reversed());
    let mut state = TableState::new().with_selected((!rows.is_empty()).then(|| view.selected()));
    frame.render_stateful_widget(shown, area, &mut state);
}

/// Returns the latest ratios as bars; a moment without accesses is empty.
fn spark(ratios: &[Option<f64>], width: usize) -> String {
    let bar = |ratio: &Option<f64>| ratio.map_or(' ', |ratio| BARS[1 + (7.0 * ratio).round() as usize]);
    ratios[ratios.len().saturating_sub(width)..].iter().map(bar).collect()
}

/// Returns the heat of a mapping's parts, merged to at most so many.
fn strip(parts: &[(f64, u8)], width: usize, hottest: f64) -> Line<'static> {
    let width = width.min(parts.len()).max(1);
    let bar = |place: usize| {
        let merged = &parts[place * parts.len() / width..(place + 1) * parts.len() / width];
        let count = merged.len().max(1);
        let heat = merged.iter().map(|part| part.0).sum::<f64>() / count as f64;
        let fast = merged.iter().map(|part| usize::from(part.1)).sum::<usize>() / count;
        let level =
            if heat > 0.0 { 1 + (7.0 * heat.max(1.0).ln() / hottest.ln().max(1e-9)) as usize } else { 0 };
        // Memory without accesses still shows where it is.
        let letter = if level == 0 { '·' } else { BARS[level.min(8)] };
        Span::raw(letter.to_string()).style(memory(fast as u8))
    };
    Line::from((0..width).map(bar).collect::<Vec<_>>())
}

fn foot(view: &View) -> Line<'static> {
    if let Some(message) = &view.message {
        return Line::from(one_line(message).into_owned()).bold();
    }
    let keys = match view.place {
        Place::Groups => "q quit  ↑↓ choose  Enter programs  ←→ sort  r reverse  p policy  l limit",
        Place::Group(_) => {
            "q quit  Esc back  ↑↓ choose  Enter mappings  ←→ sort  r reverse  p policy  l limit"
        }
        Place::Program(..) => "q quit  Esc back  ↑↓ choose  ←→ sort  r reverse  p policy  l limit",
    };
    Line::from(keys).dim()
}

/// Draws the change that is being typed, above everything else.
fn ask(frame: &mut Frame<'_>, dialog: &Dialog) {
    let Dialog { what, group, typed, ready } = dialog;
    let group = one_line(group);
    let (first, second) = match (ready, *what) {
        (true, _) => (format!("Set the {what} of {group} to {typed}?"), "y: yes   any other key: no"),
        (false, "policy") => {
            (format!("Policy of {group}: {typed}_"), "↑↓ next policy   Enter: go on   Esc: leave")
        }
        (false, _) => (
            format!("Limit of {group}: {typed}_"),
            "a size such as 4G or 25%, or none   Enter: go on   Esc: leave",
        ),
    };
    let width = first.chars().count().max(second.chars().count()) as u16 + 4;
    let area = frame.area().centered(Constraint::Max(width), Constraint::Max(4));
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(" change ");
    frame
        .render_widget(Paragraph::new(vec![Line::from(first).bold(), Line::from(second)]).block(block), area);
}
