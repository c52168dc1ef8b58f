//! The one binary, `agon`.

fn main() {}
