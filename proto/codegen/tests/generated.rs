//! Compares `proto/generated` with the output of the code generator for agon.proto, or renews it.
//!
//! This package does not depend on the generated code, so that it compiles whatever the state of that code is.
//! `UPDATE_EXPECT=1 cargo test --package agon-proto-codegen` renews the files.

use std::fs;
use std::path::Path;

use prost::Message;

#[test]
fn generated_code_matches_the_schema() -> Result<(), Box<dyn std::error::Error>> {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = tempfile::tempdir()?;
    let descriptors = protox::compile([proto.join("agon/v1/agon.proto")], [&proto])?;
    fs::write(output.path().join("agon.v1.descriptors"), descriptors.encode_to_vec())?;
    // `Bytes` fields share the receive buffer instead of copying it.
    tonic_prost_build::configure()
        .bytes(".agon.v1.Submission.moves")
        .bytes(".agon.v1.Submission.probes")
        .out_dir(output.path())
        .compile_fds(descriptors)?;
    for file in ["agon.v1.rs", "agon.v1.descriptors"] {
        let (committed, generated) = (proto.join("generated").join(file), output.path().join(file));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::copy(generated, committed)?;
        } else {
            let current = fs::read(generated)? == fs::read(committed)?;
            assert!(
                current,
                "generated/{file} is outdated; run `UPDATE_EXPECT=1 cargo test --package agon-proto-codegen`"
            );
        }
    }
    Ok(())
}
