//! A policy as a shared library, which `isotherm` loads by its path: `--policy path/to/lib.so`.
//!
//! The author implements [`isotherm_core::Policy`], as policies of the repository do, and names it once:
//!
//! ```
//! use isotherm_core::parameters::Parameters;
//! use isotherm_core::{Bytes, Nanos, Plan, Policy, SampleBatch, Sampling, SamplingRate, SamplingScope};
//! use isotherm_core::{Setup, Signal, Signals, View, parameters};
//!
//! parameters! {
//!     /// What a user may set.
//!     pub struct Settings {
//!         /// Samples that are handled at once.
//!         batch: usize = count(1, 1_000_000, "1000").source("ours: an example"),
//!     }
//! }
//!
//! /// Samples loads and moves nothing.
//! pub struct Idle(Settings);
//!
//! impl Idle {
//!     fn new(parameters: &Parameters, _: &Setup) -> Self { Self(Settings::read(parameters)) }
//! }
//!
//! impl Policy for Idle {
//!     fn signals(&self) -> Signals { Signals::NONE.with(Signal::LoadSamples) }
//!     fn sampling(&self) -> Sampling {
//!         let rate = SamplingRate::Period(1000);
//!         Sampling::loads(rate, SamplingScope::AllTiers, self.0.batch, Nanos::SECOND)
//!     }
//!     fn observe(&mut self, _: &SampleBatch, _: &mut dyn View) {}
//!     fn step(&mut self, _: Nanos, _: &mut dyn View, _: &mut Plan) {}
//!     fn metadata(&self) -> Bytes { Bytes(0) }
//! }
//!
//! isotherm_policy::export! {
//!     name: "idle",
//!     title: "Idle",
//!     paper: "an example",
//!     help: "Samples loads and moves nothing.",
//!     settings: Settings,
//!     policy: Idle,
//! }
//! # fn main() {}
//! ```
//!
//! The library and the program may come from different compilers: they share nothing but the structures of
//! [`abi`], whose version the program checks before it runs any of the library's code. A panic does not leave
//! the library: the run ends with its message in one line.
//!
//! The crate depends on `isotherm-core` alone, without that one's dependencies: `isotherm policy new` puts
//! the source of both into the crate that it makes, which then builds in seconds and needs no network.

#![allow(unsafe_code)]

pub mod abi;
mod library;
mod memory;

pub use library::{Exported, table};

/// Exports a policy from a library; see the [crate's documentation](crate). Its type has a function
/// `new(&Parameters, &Setup)`, which returns it or, if the last word is `fallible` instead of `policy`, a
/// `Result` whose error is shown to the user.
#[macro_export]
macro_rules! export {
    (
        name: $name:expr, title: $title:expr, paper: $paper:expr, help: $help:expr,
        settings: $settings:ty, policy: $policy:ty $(,)?
    ) => {
        $crate::export!(@ $policy, $settings, [$name, $title, $paper, $help], |parameters, setup| {
            ::core::result::Result::Ok(<$policy>::new(parameters, setup))
        });
    };
    (
        name: $name:expr, title: $title:expr, paper: $paper:expr, help: $help:expr,
        settings: $settings:ty, fallible: $policy:ty $(,)?
    ) => {
        $crate::export!(@ $policy, $settings, [$name, $title, $paper, $help], |parameters, setup| {
            <$policy>::new(parameters, setup).map_err(|error| ::std::string::ToString::to_string(&error))
        });
    };
    (
        @ $policy:ty, $settings:ty,
        [$name:expr, $title:expr, $paper:expr, $help:expr],
        |$parameters:ident, $setup:ident| $build:expr
    ) => {
        #[allow(unsafe_code, non_upper_case_globals)]
        const _: () = {
            struct Exported;

            impl $crate::Exported for Exported {
                type Policy = $policy;
                const NAME: &'static str = $name;
                const TITLE: &'static str = $title;
                const PAPER: &'static str = $paper;
                const HELP: &'static str = $help;
                const SPECS: &'static [::isotherm_core::parameters::Spec] = <$settings>::SPECS;

                fn build(
                    $parameters: &::isotherm_core::parameters::Parameters,
                    $setup: &::isotherm_core::Setup,
                ) -> ::core::result::Result<$policy, ::std::string::String> {
                    $build
                }
            }

            #[unsafe(no_mangle)]
            static isotherm_policy_abi: u32 = $crate::abi::VERSION;

            #[unsafe(no_mangle)]
            extern "C" fn isotherm_policy() -> *const $crate::abi::Table {
                $crate::table::<Exported>()
            }
        };
    };
}
