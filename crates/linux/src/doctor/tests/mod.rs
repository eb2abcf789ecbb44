mod case;
mod machine;
mod memory;
mod rights;
mod rivals;
mod shape;
mod sources;
