//! To which group a program belongs.

use std::collections::BTreeMap;

use isotherm_linux::process::census::Program;

/// A text in which `*` stands for any characters but `/`, `**` for any, and `?` for one that is not `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<Part>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Character(char),
    One,
    Some,
    Any,
}

impl Pattern {
    /// Compiles a pattern; every text is one.
    pub fn new(text: &str) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        for character in text.chars() {
            match (character, parts.last_mut()) {
                ('*', Some(last @ (Part::Some | Part::Any))) => *last = Part::Any,
                ('*', _) => parts.push(Part::Some),
                ('?', _) => parts.push(Part::One),
                _ => parts.push(Part::Character(character)),
            }
        }
        Self(parts)
    }

    /// Whether the whole text fits. Takes time in proportion to the product of both lengths at most.
    pub fn fits(&self, text: &str) -> bool {
        // Whether the parts before each place fit the text so far.
        let mut fitting = vec![false; self.0.len() + 1];
        fitting[0] = true;
        self.skip_stars(&mut fitting);
        for character in text.chars() {
            let mut next = vec![false; fitting.len()];
            for (place, part) in self.0.iter().enumerate().filter(|(place, _)| fitting[*place]) {
                match part {
                    Part::Character(expected) => next[place + 1] |= *expected == character,
                    Part::One => next[place + 1] |= character != '/',
                    Part::Some => next[place] |= character != '/',
                    Part::Any => next[place] = true,
                }
            }
            fitting = next;
            self.skip_stars(&mut fitting);
        }
        fitting[self.0.len()]
    }

    /// A star may stand for nothing.
    fn skip_stars(&self, fitting: &mut [bool]) {
        for (place, part) in self.0.iter().enumerate() {
            if fitting[place] && matches!(part, Part::Some | Part::Any) {
                fitting[place + 1] = true;
            }
        }
    }
}

/// Which programs belong to a group: those that fit one entry of every list that is not empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// Paths of cgroups; programs in cgroups below one fit too.
    pub cgroups: Vec<Pattern>,
    /// Names or numbers of users.
    pub users: Vec<String>,
    /// Names of programs.
    pub commands: Vec<Pattern>,
}

impl Rule {
    /// Whether the program fits; `users` holds the numbers of this machine's users by name.
    pub fn fits(&self, program: &Program, users: &BTreeMap<String, u32>) -> bool {
        let user =
            |wanted: &String| users.get(wanted) == Some(&program.user) || wanted.parse() == Ok(program.user);
        (self.cgroups.is_empty() || self.in_cgroup(&program.cgroup))
            && (self.users.is_empty() || self.users.iter().any(user))
            && (self.commands.is_empty() || self.commands.iter().any(|one| one.fits(&program.command)))
    }

    fn in_cgroup(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(end, _)| end).filter(|&end| end > 0);
        let mut above = ends.chain([path.len()]).map(|end| &path[..end]);
        above.any(|path| self.cgroups.iter().any(|pattern| pattern.fits(path)))
    }
}

#[cfg(test)]
mod tests {
    use isotherm_linux::process::Pid;

    use super::*;

    fn fits(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).fits(text)
    }

    #[test]
    fn stars_stand_for_parts_of_a_path() {
        assert!(fits("/system.slice/postgresql*.service", "/system.slice/postgresql@15-main.service"));
        assert!(!fits("/system.slice/*.service", "/system.slice/a.slice/b.service"));
        assert!(fits("/system.slice/**.service", "/system.slice/a.slice/b.service"));
        assert!(fits("py?hon*", "python") && !fits("py?hon", "py/hon") && !fits("a", "ab") && fits("*", ""));
        let many = "*a".repeat(200);
        assert!(!fits(&many, &"a".repeat(199)), "in a moment");
    }

    #[test]
    fn a_program_fits_a_rule_by_all_that_the_rule_names() {
        let program = Program {
            pid: Pid(7),
            start: 1,
            cgroup: "/system.slice/db.service/worker".into(),
            user: 26,
            command: "postgres".into(),
            resident: isotherm_core::Bytes(0),
        };
        let users = BTreeMap::from([("postgres".to_owned(), 26)]);
        let rule = |cgroup: &str, user: &str, command: &str| {
            let list = |text: &str| (!text.is_empty()).then(|| Pattern::new(text)).into_iter().collect();
            let users = (!user.is_empty()).then(|| user.to_owned()).into_iter().collect();
            Rule { cgroups: list(cgroup), users, commands: list(command) }
        };
        let fits = |cgroup, user, command| rule(cgroup, user, command).fits(&program, &users);
        assert!(fits("", "", "") && fits("/system.slice/*.service", "postgres", "post*"));
        assert!(fits("", "26", "") && !fits("", "27", "") && !fits("", "nobody", ""));
        assert!(!fits("/user.slice", "postgres", "") && !fits("/system.slice/db", "", ""));
        assert!(!fits("/system.slice", "postgres", "mysqld"));
    }
}
