//! Reads Kubernetes manifests as types of the Kubernetes API and rejects unknown fields.
//!
//!     kubectl kustomize deploy/kubernetes/overlays/local | cargo run --manifest-path deploy/manifests/Cargo.toml
//!
//! Each object must have a kind that is listed here. To test the check itself, an unknown field is added to each mapping with
//! fixed keys, and the object must be rejected. Missing fields are not detected, since the types have defaults for them; the
//! schemas that laws.py uses detect those.

use std::io;
use std::process::ExitCode;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The reason that an object is rejected.
type Rejection = String;

/// The reader of one kind.
type Reader = fn(&Value) -> Result<(), Rejection>;

/// The API of KEDA, which is not part of Kubernetes; laws.py checks its objects.
const SKIPPED_API: &str = "keda.sh/v1alpha1";

/// Every kind in Agon's manifests.
const KINDS: &[(&str, Reader)] = &[
    ("ConfigMap", read::<ConfigMap>),
    ("Deployment", read::<Deployment>),
    ("HorizontalPodAutoscaler", read::<HorizontalPodAutoscaler>),
    ("Namespace", read::<Namespace>),
    ("NetworkPolicy", read::<NetworkPolicy>),
    ("PersistentVolumeClaim", read::<PersistentVolumeClaim>),
    ("Pod", read::<Pod>),
    ("PodDisruptionBudget", read::<PodDisruptionBudget>),
    ("Service", read::<Service>),
    ("ServiceAccount", read::<ServiceAccount>),
    ("StatefulSet", read::<StatefulSet>),
];

/// Mappings with arbitrary keys.
const FREE_MAPPINGS: [&str; 7] =
    ["annotations", "data", "labels", "limits", "matchLabels", "requests", "selector"];

fn main() -> ExitCode {
    let (mut objects, mut altered) = (0, 0);
    let mut errors = Vec::new();
    for object in documents() {
        let name = format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]));
        if object["apiVersion"] == SKIPPED_API {
            continue;
        }
        let Some((_, reader)) = KINDS.iter().find(|(kind, _)| object["kind"] == *kind) else {
            errors.push(format!("{name}: unknown kind; add it to KINDS"));
            continue;
        };
        objects += 1;
        if let Err(rejection) = reader(&object) {
            errors.push(format!("{name}: {rejection}"));
            continue;
        }
        for path in mappings(&object) {
            let mut other = object.clone();
            if let Some(Value::Object(mapping)) = other.pointer_mut(&path) {
                mapping.insert("misspelt".to_string(), Value::from("x"));
                altered += 1;
            }
            if reader(&other).is_ok() {
                errors.push(format!("{name}: an unknown field in {path} is not rejected"));
            }
        }
    }
    for line in &errors {
        eprintln!("{line}");
    }
    println!("{objects} objects are valid types of the API; {altered} altered copies were rejected");
    if errors.is_empty() && objects > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Reads the objects from standard input.
fn documents() -> Vec<Value> {
    let text = io::read_to_string(io::stdin()).expect("standard input can be read as text");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("standard input is YAML");
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("unnamed")
}

/// Reads an object as a type of the API and rejects unknown fields.
fn read<T: DeserializeOwned>(object: &Value) -> Result<(), Rejection> {
    let mut unknown = Vec::new();
    serde_ignored::deserialize::<_, _, T>(object, |path| unknown.push(path.to_string()))
        .map_err(|error| error.to_string())?;
    if unknown.is_empty() { Ok(()) } else { Err(format!("unknown: {}", unknown.join(", "))) }
}

/// Returns the JSON pointers of the mappings whose keys the API fixes.
fn mappings(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![(String::new(), value)];
    while let Some((path, value)) = pending.pop() {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    // `selector` has labels only in a Service; elsewhere it has `matchLabels`.
                    let free = FREE_MAPPINGS.contains(&key.as_str()) && value.get("matchLabels").is_none();
                    if !free {
                        pending.push((format!("{path}/{key}"), value));
                    }
                }
                found.push(path);
            }
            Value::Array(items) => {
                pending.extend(items.iter().enumerate().map(|(at, item)| (format!("{path}/{at}"), item)));
            }
            _ => {}
        }
    }
    found
}
