mod case;
mod conflicts;
mod machine;
mod memory;
mod rights;
mod shape;
mod sources;
