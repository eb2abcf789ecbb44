//! The planted program, built beside this package's tests, which run it: see `isotherm_planted`.

fn main() -> std::process::ExitCode {
    isotherm_planted::run()
}
