//! The choice of access sources: the best available ones, or the one that the user names.

use isotherm_core::{Signal, Signals};
use isotherm_linux::LinuxError;

use super::candidates::{Candidate, Opened};

#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    #[error("--source {name}: no such source; use one of {known}")]
    Unknown { name: String, known: String },
    #[error("--source {name}: {error}")]
    Refused { name: &'static str, error: LinuxError },
}

/// Opens candidates in order until every needed signal is offered, or exactly the one `asked` for.
///
/// # Errors
/// If the user asked for a source that does not exist or cannot be opened.
pub(super) fn choose(
    needs: Signals,
    candidates: Vec<Candidate<'_>>,
    asked: Option<&str>,
    refused: &mut Vec<(&'static str, LinuxError)>,
) -> Result<Vec<Opened>, ChoiceError> {
    if let Some(name) = asked {
        let known = candidates.iter().map(|candidate| candidate.name).collect::<Vec<_>>().join(", ");
        let Some(candidate) = candidates.into_iter().find(|candidate| candidate.name == name) else {
            return Err(ChoiceError::Unknown { name: name.into(), known });
        };
        let name = candidate.name;
        return match (candidate.open)() {
            Ok(opened) => Ok(vec![opened]),
            Err(error) => Err(ChoiceError::Refused { name, error }),
        };
    }
    let mut chosen: Vec<Opened> = Vec::new();
    let mut offered = Signals::NONE;
    for candidate in candidates {
        if !needs.missing(offered).any(|signal| candidate.offers.has(signal)) {
            continue;
        }
        match (candidate.open)() {
            Ok(opened) => {
                let own = opened.source.offers();
                offered =
                    Signal::ALL.into_iter().filter(|&signal| own.has(signal)).fold(offered, Signals::with);
                chosen.push(opened);
            }
            Err(error) => refused.push((candidate.name, error)),
        }
    }
    Ok(chosen)
}
