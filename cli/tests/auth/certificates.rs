//! Missing and invalid certificates, on either side.

use std::time::Duration;

use agon_transport::authority::{Authority, Validity};

use crate::secured_cluster::{SecuredCluster, assert_fails, valid};
use agon_testing::binary::agon;
use agon_testing::folder::Folder;
use agon_testing::processes::{Cluster, wait_until};

#[test]
fn rejects_clients_without_a_trusted_certificate() {
    let secured = SecuredCluster::start(&[]);
    let before = secured.state();
    let (foreign, pair) = Authority::create().unwrap();
    secured.write_pair(&pair, "foreign-ca");
    secured.write_pair(&foreign.issue_client("user", valid()).unwrap(), "foreign");
    secured.write_pair(&secured.authority.issue_client("user", Validity::expired()).unwrap(), "expired");
    for (what, certificate, message) in [
        ("no certificate", None, "the coordinator requires a client certificate; set --tls-cert"),
        (
            "an expired certificate",
            Some("expired"),
            "the client certificate has expired or is not yet valid; renew it",
        ),
        ("a foreign certificate", Some("foreign"), "does not trust the authority of the client certificate"),
        (
            "a coordinator's certificate",
            Some("coordinator"),
            "which is not a client certificate; use client.pem",
        ),
    ] {
        let answer = secured.call(&["cancel", "latest"], Some("op"), certificate);
        assert_fails(what, &answer, 1, message);
    }
    let address = secured.cluster.address();
    let (foreign_ca, token) = (secured.path("foreign-ca.pem"), secured.path("op.token"));
    let flags = ["--coordinator", &address, "--tls-ca", &foreign_ca, "--token-file", &token];
    let answer = agon(&[&["list"], &flags[..]].concat());
    assert_fails("the wrong authority", &answer, 1, "was issued by an unknown authority");
    let plain = address.replace("https", "http");
    let answer = agon(&["list", "--coordinator", &plain]);
    assert_fails(
        "http:// to a port of TLS",
        &answer,
        1,
        "the coordinator requires TLS; use https:// and set --tls-ca",
    );
    let answer = agon(&["list", "--coordinator", &address]);
    assert_fails("https:// without an authority", &answer, 2, "an https:// coordinator requires --tls-ca");
    let answer = agon(&["list", "--coordinator", &plain, "--tls-ca", &foreign_ca]);
    assert_fails("http:// with an authority", &answer, 2, "does not use TLS; use https://, or omit --tls-ca");
    assert_eq!(secured.state(), before);
}

#[test]
fn reports_tls_against_a_plaintext_port() {
    let cluster = Cluster::start(Duration::from_secs(60));
    let (_, pair) = Authority::create().unwrap();
    let folder = Folder::new();
    pair.write(folder.as_path(), "ca").unwrap();
    let ca = folder.path("ca.pem");
    let address = cluster.address().replace("http", "https");
    let answer = agon(&["list", "--coordinator", &address, "--tls-ca", &ca]);
    assert_fails("https:// to a port without TLS", &answer, 1, "the server does not speak TLS; use http://");
}

/// A worker reads its files at every attempt.
#[test]
fn worker_reconnects_with_renewed_certificate() {
    let secured = SecuredCluster::start(&[]);
    secured.write_pair(&secured.authority.issue_client("w", Validity::expired()).unwrap(), "w");
    let worker = secured.start_worker("w", "w");
    wait_until("the worker reports the reason", || {
        worker.log().contains("the client certificate has expired").then_some(())
    });
    secured.write_pair(&secured.authority.issue_client("w", valid()).unwrap(), "w");
    secured.cluster.wait_for_run("the run is done", |run| run["state"] == "done");
}

#[test]
fn reloads_certificates_without_ending_sessions() {
    let secured = SecuredCluster::start(&[]);
    let worker = secured.start_worker("steady", "client");
    secured.wait_for_worker("steady");

    let hosts = |name: &str| vec![name.to_string()];
    let list = || secured.call(&["list"], Some("op"), Some("client"));
    let wait_for_error =
        |message: &str| wait_until(message, || Some(list()).filter(|answer| answer.err.contains(message)));
    secured.write_pair(
        &secured.authority.issue_server(&hosts("127.0.0.1"), Validity::expired()).unwrap(),
        "coordinator",
    );
    let answer = wait_for_error("the coordinator's certificate has expired");
    assert_fails("the coordinator's certificate has expired", &answer, 1, "renew it with `agon certs`");
    secured.write_pair(
        &secured.authority.issue_server(&hosts("elsewhere.example"), valid()).unwrap(),
        "coordinator",
    );
    let answer =
        wait_for_error("the coordinator's certificate is valid for elsewhere.example, not for 127.0.0.1");
    assert_fails("the coordinator has another name", &answer, 1, "`agon certs --host 127.0.0.1`");

    // An invalid file changes nothing.
    std::fs::write(secured.path("coordinator.pem"), "half of it").unwrap();
    wait_until("the coordinator warns", || {
        secured.cluster.log().contains("the previous credentials stay in use").then_some(())
    });
    wait_for_error("elsewhere.example");

    secured.write_pair(&secured.authority.issue_server(&hosts("127.0.0.1"), valid()).unwrap(), "coordinator");
    wait_until("calls succeed again", || (list().code == 0).then_some(()));
    assert_eq!(worker.log().matches(" connected").count(), 1, "{}", worker.log());
    assert_eq!(secured.cluster.worker_status("steady")["connected"].as_bool(), Some(true));
}

#[test]
fn renewed_certificate_keeps_its_names() {
    let folder = Folder::new();
    let pki = folder.as_path().join("pki");
    let certs = |arguments: &[&str]| agon(&[&["certs", pki.to_str().unwrap(), "--json"], arguments].concat());
    for host in ["https://x:1", "bad host", ""] {
        let answer = certs(&["--host", host]);
        assert_fails("an invalid host name", &answer, 2, "is not a host name or IP address");
    }
    assert_fails("an invalid client name", &certs(&["--client", "../x"]), 2, "use 1 to 64 letters");
    assert_fails(
        "a coordinator as a client",
        &certs(&["--client", "coordinator"]),
        2,
        "`coordinator` is reserved; choose",
    );
    assert!(!pki.exists(), "nothing was written");
    assert_eq!(certs(&["--host", "agon.example", "--host", "10.0.0.7"]).code, 0);
    let renewed = certs(&["--host", "more.example", "--client", "anna", "--client", "fleet"]);
    let document: serde_json::Value = serde_json::from_str(&renewed.out).unwrap();
    let hosts = ["localhost", "127.0.0.1", "::1", "agon.example", "10.0.0.7", "more.example"];
    assert_eq!((&document["hosts"], &document["renewed"]), (&serde_json::json!(hosts), &true.into()));
    for name in ["anna.pem", "anna.key", "fleet.pem", "fleet.key", "client.pem"] {
        assert!(pki.join(name).exists(), "{name}");
    }
    let (_, foreign) = Authority::create().unwrap();
    std::fs::write(pki.join("ca.key"), foreign.key).unwrap();
    let before = std::fs::read(pki.join("coordinator.pem")).unwrap();
    assert_fails("a foreign key", &certs(&[]), 2, "is not the key of");
    assert_eq!(std::fs::read(pki.join("coordinator.pem")).unwrap(), before);
}
