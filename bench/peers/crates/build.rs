//! Writes a module with the boards that the crate `minimax` ships as examples, read from where Cargo unpacked the crate, so
//! that its authors' own code is measured.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn main() {
    let metadata = Command::new(env::var("CARGO").expect("cargo sets CARGO"))
        .args(["metadata", "--format-version=1"])
        .output()
        .expect("cargo metadata runs");
    let text = String::from_utf8(metadata.stdout).expect("metadata is text");
    let end = text.find("minimax-0.6.0/Cargo.toml").expect("minimax is a dependency") + "minimax-0.6.0".len();
    let start = text[..end].rfind('"').expect("a path is quoted") + 1;
    let examples = PathBuf::from(&text[start..end]).join("examples");
    let module = |name: &str| {
        let path = examples.join(format!("{name}.rs"));
        format!("#[path = {path:?}]\n#[allow(warnings)]\npub mod {name};\n")
    };
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("boards.rs");
    fs::write(out, module("connect4") + &module("ttt")).expect("the output folder can be written to");
    println!("cargo:rerun-if-changed=Cargo.toml");
}
