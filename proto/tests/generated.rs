//! The code of agon.v1 that is kept in `generated/` is what agon.proto says. It is kept, so that a first build need not
//! compile the compiler of it. `UPDATE_EXPECT=1 cargo test --release --package agon-proto --test generated` makes it anew.

use std::fs;
use std::path::Path;

use prost::Message;

#[test]
fn the_generated_code_is_current() -> Result<(), Box<dyn std::error::Error>> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = tempfile::tempdir()?;
    let descriptors = protox::compile([home.join("agon/v1/agon.proto")], [home])?;
    fs::write(made.path().join("agon.v1.descriptors"), descriptors.encode_to_vec())?;
    // Plies are shared with what was received, not copied.
    tonic_prost_build::configure()
        .bytes(".agon.v1.Submission.moves")
        .bytes(".agon.v1.Submission.probes")
        .out_dir(made.path())
        .compile_fds(descriptors)?;
    for file in ["agon.v1.rs", "agon.v1.descriptors"] {
        let (kept, made) = (home.join("generated").join(file), made.path().join(file));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::copy(made, kept)?;
        } else {
            let current = fs::read(made)? == fs::read(kept)?;
            assert!(current, "generated/{file} is not what agon.proto says; UPDATE_EXPECT=1 makes it anew");
        }
    }
    Ok(())
}
