//! Reads Kubernetes manifests as the types of the Kubernetes API and refuses fields that these do not know.
//!
//!     kubectl kustomize deploy/kubernetes/overlays/local | cargo run --manifest-path deploy/manifests/Cargo.toml
//!
//! Each object must be of a kind that is listed here, and is read to its last field. Then the reader itself is tried: with a
//! field that nobody knows in any one of its mappings, save those whose keys are anybody's, the object must be refused.
//! What is missing is not seen here, since the types have a default for it; the schemas that laws.py reads by see that.

use std::io;
use std::process::ExitCode;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Why an object is refused.
type Refusal = String;

/// A reader of one kind.
type Reader = fn(&Value) -> Result<(), Refusal>;

/// KEDA's objects are none of the Kubernetes API; laws.py reads them.
const PASSED_BY: &str = "keda.sh/v1alpha1";

/// Every kind that Agon's manifests have.
const KINDS: [(&str, Reader); 11] = [
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

/// Mappings whose keys are chosen by whoever writes them.
const ANYBODYS: [&str; 7] =
    ["annotations", "data", "labels", "limits", "matchLabels", "requests", "selector"];

fn main() -> ExitCode {
    let (mut objects, mut spoiled) = (0, 0);
    let mut wrong = Vec::new();
    for object in documents() {
        let name = format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]));
        if object["apiVersion"] == PASSED_BY {
            continue;
        }
        let Some((_, reader)) = KINDS.iter().find(|(kind, _)| object["kind"] == *kind) else {
            wrong.push(format!("{name}: its kind is not known here"));
            continue;
        };
        objects += 1;
        if let Err(refusal) = reader(&object) {
            wrong.push(format!("{name}: {refusal}"));
            continue;
        }
        for place in mappings(&object) {
            let mut other = object.clone();
            if let Some(Value::Object(mapping)) = other.pointer_mut(&place) {
                mapping.insert("misspelt".to_string(), Value::from("x"));
                spoiled += 1;
            }
            if reader(&other).is_ok() {
                wrong.push(format!("{name}: an unknown field passes in {place}"));
            }
        }
    }
    for line in &wrong {
        eprintln!("{line}");
    }
    println!(
        "{objects} objects are read as types of the API, and {spoiled} times refused with a misspelt field"
    );
    if wrong.is_empty() && objects > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The objects of standard input.
fn documents() -> Vec<Value> {
    let text = io::read_to_string(io::stdin()).expect("standard input can be read as text");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("standard input is YAML");
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("nameless")
}

/// Reads an object as a type of the API, to its last field.
fn read<T: DeserializeOwned>(object: &Value) -> Result<(), Refusal> {
    let mut unknown = Vec::new();
    serde_ignored::deserialize::<_, _, T>(object, |path| unknown.push(path.to_string()))
        .map_err(|error| error.to_string())?;
    if unknown.is_empty() { Ok(()) } else { Err(format!("unknown: {}", unknown.join(", "))) }
}

/// Where the mappings of an object are whose keys are the API's.
fn mappings(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut ahead = vec![(String::new(), value)];
    while let Some((place, value)) = ahead.pop() {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    // `selector` is of labels in a Service alone; elsewhere it has `matchLabels`.
                    let free = ANYBODYS.contains(&key.as_str()) && value.get("matchLabels").is_none();
                    if !free {
                        ahead.push((format!("{place}/{key}"), value));
                    }
                }
                found.push(place);
            }
            Value::Array(items) => {
                ahead.extend(items.iter().enumerate().map(|(at, item)| (format!("{place}/{at}"), item)));
            }
            _ => {}
        }
    }
    found
}
