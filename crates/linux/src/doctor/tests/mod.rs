mod cases;
mod machine;
mod shape;
