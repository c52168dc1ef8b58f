//! Those who show the wrong certificate, or none, on either side.

use std::time::Duration;

use agon_transport::authority::{Authority, Validity};

use crate::binary::agon;
use crate::processes::{Cluster, Process, until};
use crate::secured_cluster::{SecuredCluster, fails, valid};

#[test]
fn without_a_certificate_that_counts_nobody_comes_in() {
    let secured = SecuredCluster::open(&[]);
    let before = secured.state();
    let (foreign, pair) = Authority::create().unwrap();
    secured.keep(&pair, "foreign-ca");
    secured.keep(&foreign.client("somebody", valid()).unwrap(), "foreign");
    secured.keep(&secured.authority.client("somebody", Validity::expired()).unwrap(), "expired");
    for (what, certificate, sentence) in [
        (
            "no certificate",
            None,
            "the coordinator asks for a client certificate and there was none; give --tls-cert",
        ),
        (
            "an expired certificate",
            Some("expired"),
            "our certificate has expired or is not yet valid; renew it",
        ),
        ("a foreign certificate", Some("foreign"), "does not know the authority that signed our certificate"),
        ("a coordinator's certificate", Some("coordinator"), "which is not one for clients; give client.pem"),
    ] {
        let answer = secured.call(&["cancel", "latest"], Some("op"), certificate);
        fails(what, &answer, 1, sentence);
    }
    let address = secured.cluster.address();
    let (foreign_ca, token) = (secured.path("foreign-ca.pem"), secured.path("op.token"));
    let shown = ["--coordinator", &address, "--tls-ca", &foreign_ca, "--token-file", &token];
    let answer = agon(&[&["list"], &shown[..]].concat());
    fails("the wrong authority", &answer, 1, "was signed by an authority that is not known here");
    let plain = address.replace("https", "http");
    let answer = agon(&["list", "--coordinator", &plain]);
    fails(
        "http:// to a port of TLS",
        &answer,
        1,
        "the coordinator speaks TLS; say https:// and give --tls-ca",
    );
    let answer = agon(&["list", "--coordinator", &address]);
    fails("https:// without an authority", &answer, 2, "an https:// coordinator needs --tls-ca");
    let answer = agon(&["list", "--coordinator", &plain, "--tls-ca", &foreign_ca]);
    fails("http:// with an authority", &answer, 2, "certificates do nothing over");
    assert_eq!(secured.state(), before);
}

#[test]
fn tls_to_a_port_without_it_is_told_so() {
    let cluster = Cluster::start(Duration::from_secs(60));
    let (_, pair) = Authority::create().unwrap();
    let folder = tempfile::tempdir().unwrap();
    pair.write(folder.path(), "ca").unwrap();
    let ca = folder.path().join("ca.pem");
    let address = cluster.address().replace("http", "https");
    let answer = agon(&["list", "--coordinator", &address, "--tls-ca", ca.to_str().unwrap()]);
    fails("https:// to a port without TLS", &answer, 1, "does not speak TLS; say http:// and not https://");
}

/// A worker reads its files at every attempt: one whose certificate has expired comes in by itself once it is renewed.
#[test]
fn a_worker_whose_certificate_is_renewed_comes_in() {
    let secured = SecuredCluster::open(&[]);
    secured.keep(&secured.authority.client("w", Validity::expired()).unwrap(), "w");
    let client = secured.flags(Some("plays"), Some("w"));
    let flags: Vec<&str> = client.iter().map(String::as_str).collect();
    let address = secured.cluster.address();
    let call = ["worker", "--coordinator", &address, "--name", "w", "--slots", "1"];
    let log = secured.folder().join("worker.log");
    let worker = Process::start_logged(&[&call[..], &flags].concat(), log);
    until("it is told why", || worker.said().contains("our certificate has expired").then_some(()));
    secured.keep(&secured.authority.client("w", valid()).unwrap(), "w");
    secured.cluster.until_run("the run is done", |run| run["state"] == "done");
}

/// Certificates are exchanged under a coordinator that runs; whoever is inside stays.
#[test]
fn certificates_are_read_again_and_sessions_go_on() {
    let secured = SecuredCluster::open(&[]);
    let client = secured.flags(Some("plays"), Some("client"));
    let flags: Vec<&str> = client.iter().map(String::as_str).collect();
    let address = secured.cluster.address();
    let call = ["worker", "--coordinator", &address, "--name", "steady", "--slots", "1"];
    let log = secured.folder().join("worker.log");
    let worker = Process::start_logged(&[&call[..], &flags].concat(), log);
    until("the worker is there", || {
        secured.cluster.worker_status("steady")["connected"].as_bool().filter(|there| *there)
    });

    let hosts = |name: &str| vec![name.to_string()];
    let ask = || secured.call(&["list"], Some("op"), Some("client"));
    let refused =
        |sentence: &str| until(sentence, || Some(ask()).filter(|answer| answer.err.contains(sentence)));
    secured.keep(
        &secured.authority.coordinator(&hosts("127.0.0.1"), Validity::expired()).unwrap(),
        "coordinator",
    );
    let answer = refused("the coordinator's certificate has expired");
    fails("the coordinator's certificate has expired", &answer, 1, "renew it with `agon certs`");
    secured
        .keep(&secured.authority.coordinator(&hosts("elsewhere.example"), valid()).unwrap(), "coordinator");
    let answer = refused("the coordinator's certificate is for elsewhere.example and not for 127.0.0.1");
    fails("the coordinator has another name", &answer, 1, "`agon certs --host 127.0.0.1`");

    // One that makes no sense changes nothing.
    std::fs::write(secured.path("coordinator.pem"), "half of it").unwrap();
    until("it is complained about", || {
        secured.cluster.said().contains("those from before stay").then_some(())
    });
    refused("elsewhere.example");

    secured.keep(&secured.authority.coordinator(&hosts("127.0.0.1"), valid()).unwrap(), "coordinator");
    until("it is let in again", || (ask().code == 0).then_some(()));
    assert_eq!(worker.said().matches(" connected").count(), 1, "{}", worker.said());
    assert_eq!(secured.cluster.worker_status("steady")["connected"].as_bool(), Some(true));
}

/// What `agon certs` is told wrong changes nothing; what it renews keeps its names.
#[test]
fn certificates_are_renewed_for_the_names_they_have() {
    let folder = tempfile::tempdir().unwrap();
    let pki = folder.path().join("pki");
    let certs = |arguments: &[&str]| agon(&[&["certs", pki.to_str().unwrap(), "--json"], arguments].concat());
    for host in ["https://x:1", "bad host", ""] {
        let answer = certs(&["--host", host]);
        fails("no name of a host", &answer, 2, "is no name of a host and no address");
    }
    fails("no name of a client", &certs(&["--client", "../x"]), 2, "a name has 1 to 64 letters");
    fails("a coordinator as a client", &certs(&["--client", "coordinator"]), 2, "is not a client's");
    assert!(!pki.exists(), "nothing was written");
    assert_eq!(certs(&["--host", "agon.example", "--host", "10.0.0.7"]).code, 0);
    let renewed = certs(&["--host", "more.example", "--client", "anna", "--client", "fleet"]);
    let told: serde_json::Value = serde_json::from_str(&renewed.out).unwrap();
    let hosts = ["localhost", "127.0.0.1", "::1", "agon.example", "10.0.0.7", "more.example"];
    assert_eq!((&told["hosts"], &told["renewed"]), (&serde_json::json!(hosts), &true.into()));
    for name in ["anna.pem", "anna.key", "fleet.pem", "fleet.key", "client.pem"] {
        assert!(pki.join(name).exists(), "{name}");
    }
    let (_, foreign) = Authority::create().unwrap();
    std::fs::write(pki.join("ca.key"), foreign.key).unwrap();
    let before = std::fs::read(pki.join("coordinator.pem")).unwrap();
    fails("a foreign key", &certs(&[]), 2, "is not the key of");
    assert_eq!(std::fs::read(pki.join("coordinator.pem")).unwrap(), before);
}
