//! Defines the rule of code that has frame pointers and no description.

use super::rules::Rule;

/// `push rbp; mov rbp, rsp` at a function's start leaves the caller's frame pointer and the return address there
/// (System V ABI, x86-64, "The Stack Frame"). The walk checks that the register leads up the stack, and that what it finds is code.
pub(super) const RULE: Rule = Rule::Step { from_frame_pointer: true, bytes: 16, saved: 16 };
