//! Asks an engine on a thread of its own, so that keys work while an answer is awaited.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use isotherm_core::machine_status::{MachineStatus, MappingStatus};
use isotherm_daemon::daemon::Client;

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// An engine's answer.
#[derive(Debug)]
pub(super) enum News {
    Status(MachineStatus),
    Mappings(Vec<MappingStatus>),
    /// The outcome of an order: its line, or why it was refused.
    Ordered(Result<String, String>),
    /// Why there is no answer.
    Lost(String),
}

enum Wish {
    Order(String),
    /// The request for mappings that is repeated from now on, if any.
    Watch(Option<String>),
}

/// The thread that asks; it ends when this is dropped.
pub(super) struct Feed {
    wishes: Sender<Wish>,
    news: Receiver<News>,
}

impl Feed {
    pub(super) fn start(socket: PathBuf, client: Client) -> io::Result<Self> {
        let (wishes, wished) = channel();
        let (told, news) = channel();
        let ask = move || Asker { socket: &socket, client: Some(client), news: told }.run(&wished);
        std::thread::Builder::new().name("feed".into()).spawn(ask)?;
        Ok(Self { wishes, news })
    }

    pub(super) fn order(&self, line: String) {
        // A thread that has ended has told why.
        let _ = self.wishes.send(Wish::Order(line));
    }

    pub(super) fn watch(&self, request: Option<String>) {
        let _ = self.wishes.send(Wish::Watch(request));
    }

    pub(super) fn news(&self) -> impl Iterator<Item = News> {
        self.news.try_iter()
    }
}

struct Asker<'a> {
    socket: &'a Path,
    client: Option<Client>,
    news: Sender<News>,
}

impl Asker<'_> {
    fn run(mut self, wishes: &Receiver<Wish>) {
        let mut watched: Option<String> = None;
        loop {
            let wish = match wishes.recv_timeout(EVERY) {
                Ok(wish) => Some(wish),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            match wish {
                Some(Wish::Order(line)) => {
                    let answer = self.ask(&line).map(|_| line);
                    self.tell(News::Ordered(answer));
                }
                Some(Wish::Watch(request)) => watched = request,
                None => {}
            }
            let status = self.ask("status json").and_then(|answer| super::parse(&answer));
            match status {
                Ok(status) => self.tell(News::Status(status)),
                Err(why) => {
                    // The next look connects again.
                    self.client = None;
                    self.tell(News::Lost(why));
                    continue;
                }
            }
            if let Some(request) = &watched {
                let read = |answer: String| serde_json::from_str(&answer).map_err(|error| error.to_string());
                let answer = self.ask(request).and_then(read);
                self.tell(answer.map_or_else(|why| News::Ordered(Err(why)), News::Mappings));
            }
        }
    }

    fn tell(&self, news: News) {
        // Nobody listens once the view has ended; the next look at the wishes ends the thread.
        let _ = self.news.send(news);
    }

    fn ask(&mut self, line: &str) -> Result<String, String> {
        let client = match self.client.take() {
            Some(client) => client,
            None => Client::connect(self.socket)?,
        };
        self.client.insert(client).ask(line)
    }
}
