//! Programs that need AVX-512, which QEMU does not emulate.
//!
//! QEMU's processor says that it has none, and programs that ask it use other instructions. What remains are
//! files built for processors that have it, and settings that choose its code whatever the processor says.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::elf::{self, GNU_PROPERTY_X86_ISA_1_NEEDED, GNU_PROPERTY_X86_ISA_1_V4};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, ReadCache};

/// Folders in which the loader looks last.
const FOLDERS: [&str; 7] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/usr/local/lib",
    "/lib",
    "/usr/lib",
];

/// Setting of a library that chooses code of AVX-512.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Part of the library's file name.
    pub library: &'static str,
    /// The variable, and its value that chooses code without AVX-512 for any processor of the last decade.
    pub variable: &'static str,
    /// See `variable`.
    pub safe: &'static str,
    chosen: &'static [&'static str],
}

/// OpenBLAS takes its variable's word for what the processor has. numpy's copy of it dies under QEMU with
/// the first two; the third is made of the same code.
const SETTINGS: [Setting; 1] = [Setting {
    library: "openblas",
    variable: "OPENBLAS_CORETYPE",
    safe: "Haswell",
    chosen: &["skylakex", "cooperlake", "sapphirerapids"],
}];

/// Returns the settings in the environment that choose AVX-512. Recording replaces their values by the safe
/// ones.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(|setting| {
        let value = std::env::var(setting.variable).unwrap_or_default().to_lowercase();
        setting.chosen.contains(&value.as_str())
    })
}

/// Returns the setting that keeps a library from AVX-512, if there is one.
pub fn setting_of(file: &str) -> Option<&'static Setting> {
    let name = Path::new(file).file_name()?.to_string_lossy().to_lowercase();
    SETTINGS.iter().find(|setting| name.contains(setting.library))
}

/// Returns the first file that says it needs x86-64-v4: the program, or a library that is loaded with it. The
/// loader refuses such a file on a processor without AVX-512.
pub(super) fn needed_by(program: &Path) -> Option<PathBuf> {
    let (mut waiting, mut seen) = (vec![program.to_owned()], HashSet::new());
    while let Some(path) = waiting.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        // What cannot be read is the loader's to refuse.
        let Some(file) = Needs::read(&path) else { continue };
        if file.v4 {
            return Some(path);
        }
        waiting.extend(file.libraries.iter().filter_map(|name| file.find(name)));
    }
    None
}

/// Contents of a file that the loader reads.
struct Needs {
    v4: bool,
    libraries: Vec<PathBuf>,
    /// Folders that the file names for its libraries.
    folders: Vec<PathBuf>,
}

impl Needs {
    fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let file = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let (endian, headers) = (file.endian(), file.elf_program_headers());
        let mut needs = Self { v4: false, libraries: Vec::new(), folders: Vec::new() };
        for header in headers {
            let Ok(Some(mut notes)) = header.notes(endian, &cache) else { continue };
            while let Ok(Some(note)) = notes.next() {
                let Some(mut properties) = note.gnu_properties(endian) else { continue };
                while let Ok(Some(property)) = properties.next() {
                    let isa = (property.pr_type() == GNU_PROPERTY_X86_ISA_1_NEEDED)
                        .then(|| property.data_u32(endian).ok());
                    needs.v4 |= isa.flatten().is_some_and(|isa| isa & GNU_PROPERTY_X86_ISA_1_V4 != 0);
                }
            }
        }
        needs.read_dynamic(&file, &cache, path);
        Some(needs)
    }

    /// Reads the dynamic section, which a static program lacks.
    fn read_dynamic<'a>(
        &mut self,
        file: &ElfFile64<'a, Endianness, &'a ReadCache<File>>,
        cache: &'a ReadCache<File>,
        path: &Path,
    ) -> Option<()> {
        let endian = file.endian();
        let sections = file.elf_header().sections(endian, cache).ok()?;
        let (entries, strings) = sections.dynamic(endian, cache).ok()??;
        let strings = sections.strings(endian, cache, strings).ok()?;
        let origin = path.canonicalize().ok()?.parent()?.to_string_lossy().into_owned();
        for entry in entries {
            let Ok(text) = entry.string(endian, strings) else { continue };
            match entry.d_tag(endian) {
                elf::DT_NEEDED => self.libraries.push(OsStr::from_bytes(text).into()),
                elf::DT_RPATH | elf::DT_RUNPATH => {
                    let text = String::from_utf8_lossy(text).replace("${ORIGIN}", &origin);
                    let text = text.replace("$ORIGIN", &origin);
                    self.folders.extend(text.split(':').map(PathBuf::from));
                }
                _ => {}
            }
        }
        Some(())
    }

    fn find(&self, library: &Path) -> Option<PathBuf> {
        if library.parent().is_some_and(|folder| !folder.as_os_str().is_empty()) {
            return Some(library.into());
        }
        let told = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let folders = self.folders.iter().cloned().chain(std::env::split_paths(&told));
        let folders = folders.chain(FOLDERS.map(PathBuf::from));
        folders.map(|folder| folder.join(library)).find(|path| path.is_file())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_library_built_for_v4_is_found_behind_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let compile = |output: &str, text: &str, options: &[&str]| {
            let source = folder.path().join("source.c");
            std::fs::write(&source, text).expect("written");
            let mut gcc = Command::new("cc");
            gcc.current_dir(folder.path()).arg("source.c").args(["-o", output]).args(options);
            assert!(gcc.status().expect("a compiler").success());
            folder.path().join(output)
        };
        let library = ["-shared", "-fPIC", "-Wl,-rpath,$ORIGIN", "-L."];
        let with = |more: &[&'static str]| [&library[..], more].concat();
        compile("libnew.so", "int last(void) { return 1; }", &with(&["-Wl,-z,x86-64-v4"]));
        compile("libold.so", "int last(void); int f(void) { return last(); }", &with(&["-lnew"]));
        let main = "int f(void); int main(void) { return f(); }";
        let program =
            compile("program", main, &["-Wl,-rpath,$ORIGIN", "-L.", "-lold", "-Wl,--allow-shlib-undefined"]);
        let found = needed_by(&program).expect("it needs v4");
        assert_eq!(found.file_name(), Some(OsStr::new("libnew.so")));
        compile("libnew.so", "int last(void) { return 1; }", &with(&["-Wl,-z,x86-64-v3"]));
        assert_eq!(needed_by(&program), None);
        assert_eq!(needed_by(Path::new("/etc/passwd")), None);
    }

    #[test]
    fn a_library_has_its_setting() {
        let variable = |file| setting_of(file).map(|setting| setting.variable);
        let file = "/x/numpy.libs/libscipy_openblas64_-ff651d7f.so";
        assert_eq!(variable(file), Some("OPENBLAS_CORETYPE"));
        assert_eq!(variable("/openblas/libm.so.6"), None);
    }
}
