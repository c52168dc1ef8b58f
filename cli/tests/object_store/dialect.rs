//! The differences between S3, Google and Azure: conditions, listings and bulk deletion.

use std::fmt::Write as _;

use crate::server::{Listing, Request, Response};

/// The account of Azure's emulators, the first part of their paths.
pub const ACCOUNT: &str = "devstoreaccount1/";
/// The modification time of all objects.
pub const LAST_MODIFIED: &str = "Wed, 21 Oct 2015 07:28:00 GMT";

/// The kind of store that a request addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    S3,
    Google,
    Azure,
}

/// The condition of a put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// The object does not exist.
    New,
    /// The object has this version.
    Unchanged(String),
}

impl Dialect {
    pub fn of(request: &Request) -> Dialect {
        if request.headers.contains_key("x-amz-date") {
            Dialect::S3
        } else if request.headers.contains_key("x-ms-version") {
            Dialect::Azure
        } else {
            Dialect::Google
        }
    }

    pub fn condition(self, request: &Request) -> Option<Condition> {
        let header = |name: &str| request.headers.get(name).map(|value| value.trim_matches('"').to_string());
        match self {
            Dialect::Google => header("x-goog-if-generation-match").map(|version| match version.as_str() {
                "0" => Condition::New,
                _ => Condition::Unchanged(version),
            }),
            Dialect::S3 | Dialect::Azure => header("if-none-match")
                .map(|_| Condition::New)
                .or_else(|| header("if-match").map(Condition::Unchanged)),
        }
    }

    /// Returns the status of a put whose object already exists.
    pub fn exists(self) -> u16 {
        if self == Dialect::Azure { 409 } else { 412 }
    }

    /// Returns whether a request is a listing.
    pub fn lists(self, request: &Request) -> bool {
        request.query.contains(if self == Dialect::Azure { "comp=list" } else { "list-type=2" })
    }

    pub fn listing(self, listing: &Listing<'_>) -> String {
        let mut body = String::new();
        let text = &mut body;
        match self {
            Dialect::S3 | Dialect::Google => {
                text.push_str("<ListBucketResult><IsTruncated>false</IsTruncated>");
                for (key, version, size) in &listing.objects {
                    let _ = write!(
                        text,
                        "<Contents><Key>{key}</Key><LastModified>2015-10-21T07:28:00.000Z</LastModified>\
                         <ETag>&quot;{version}&quot;</ETag><Size>{size}</Size></Contents>"
                    );
                }
                for folder in &listing.folders {
                    let _ = write!(text, "<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>");
                }
                text.push_str("</ListBucketResult>");
            }
            Dialect::Azure => {
                text.push_str("<EnumerationResults><Blobs>");
                for (key, version, size) in &listing.objects {
                    let _ = write!(
                        text,
                        "<Blob><Name>{key}</Name><Properties><Last-Modified>{LAST_MODIFIED}</Last-Modified>\
                         <Etag>{version}</Etag><Content-Length>{size}</Content-Length>\
                         <Content-Type>application/octet-stream</Content-Type></Properties></Blob>"
                    );
                }
                for folder in &listing.folders {
                    let _ = write!(text, "<BlobPrefix><Name>{folder}</Name></BlobPrefix>");
                }
                text.push_str("</Blobs><NextMarker/></EnumerationResults>");
            }
        }
        body
    }

    /// Returns the objects that a bulk deletion removes, with their bucket, and its response. Google has no bulk deletion.
    pub fn delete_many(self, request: &Request) -> (Vec<String>, Response) {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        if self == Dialect::Azure {
            let paths = body.lines().filter_map(|line| line.strip_prefix("DELETE /")?.split(' ').next());
            let keys: Vec<String> = paths.map(|path| decoded(path.trim_start_matches(ACCOUNT))).collect();
            let mut body = String::new();
            for number in 0..keys.len() {
                let _ = write!(
                    body,
                    "--answers\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n\
                     HTTP/1.1 202 Accepted\r\n\r\n\r\n"
                );
            }
            body.push_str("--answers--\r\n");
            let kind = "multipart/mixed; boundary=answers".to_string();
            return (
                keys,
                Response { status: 202, headers: vec![("Content-Type", kind)], body: body.into_bytes() },
            );
        }
        let bucket = request.key.trim_end_matches('/');
        let names: Vec<&str> =
            body.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next()).collect();
        let mut body = "<DeleteResult>".to_string();
        for name in &names {
            let _ = write!(body, "<Deleted><Key>{name}</Key></Deleted>");
        }
        body.push_str("</DeleteResult>");
        let keys = names.iter().map(|name| format!("{bucket}/{name}")).collect();
        (keys, Response { status: 200, headers: Vec::new(), body: body.into_bytes() })
    }
}

/// Decodes a percent-encoded text.
pub fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match (first, code.and_then(|code| u8::from_str_radix(code, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}
