//! An object store in memory with the subset of S3, Google and Azure that a dataset needs. It can inject faults.
//!
//! Each connection has a thread. A correct server checks the condition of a put and writes under one lock. Faults follow
//! from a seed; a server with a [`Lie`] always breaks one promise. The protocol differences are in `dialect`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agon_games::random::{below, seeded};

use crate::dialect::{ACCOUNT, Condition, Dialect, LAST_MODIFIED, decoded};

/// A fault of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// Status 503 without effect.
    Busy,
    /// Status 503 after the effect.
    DoneAndBusy,
    /// Status 409 for a put without effect, as for concurrent writers.
    Conflict,
    /// Status 412 for a put after the effect, as for a request that was sent twice.
    DoneAndRefused,
    /// The connection closes before the effect.
    CutBefore,
    /// The connection closes after the effect, without a response.
    CutAfter,
    /// A slow response.
    Slow,
    /// No response after the effect.
    Silent,
}

impl Fault {
    /// All faults.
    pub const ALL: [Fault; 8] = [
        Fault::Busy,
        Fault::DoneAndBusy,
        Fault::Conflict,
        Fault::DoneAndRefused,
        Fault::CutBefore,
        Fault::CutAfter,
        Fault::Slow,
        Fault::Silent,
    ];
}

/// A promise that the server breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// A put that must create an object overwrites an existing one.
    Overwrites,
    /// The same, but only for concurrent puts: the check and the write are not atomic.
    Races,
    /// A put that must replace one version replaces any version.
    Changes,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, (Vec<u8>, u64)>,
    /// The number of the last version.
    version: u64,
    requests: u64,
    /// One in this many requests has a fault; 0 disables faults.
    one_in: usize,
    seed: u64,
    /// The faults that come next.
    queue: Vec<Fault>,
    faults: BTreeMap<Fault, u64>,
    lie: Option<Lie>,
}

/// A running server.
pub struct Server {
    port: u16,
    state: Arc<Mutex<State>>,
}

/// A client's request.
pub struct Request {
    pub method: String,
    /// The object, with its bucket.
    pub key: String,
    pub query: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// A response.
pub struct Response {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Response {
    fn plain(status: u16) -> Response {
        Response { status, headers: Vec::new(), body: Vec::new() }
    }
}

/// The objects and folders below a prefix.
pub struct Listing<'a> {
    pub folders: BTreeSet<String>,
    /// Names within the bucket, versions and sizes.
    pub objects: Vec<(&'a str, u64, usize)>,
}

impl Server {
    /// Starts a correct server without objects.
    pub fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Server { port, state }
    }

    /// Starts a server that breaks a promise.
    pub fn lying(lie: Lie) -> Server {
        let server = Server::start();
        server.state().lie = Some(lie);
        server
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Injects a fault into one in this many requests from now on; 0 disables faults.
    pub fn misbehave(&self, one_in: usize, seed: u64) {
        let mut state = self.state();
        (state.one_in, state.seed) = (one_in, seed);
    }

    /// Returns the number of each fault so far.
    pub fn faults(&self) -> BTreeMap<Fault, u64> {
        self.state().faults.clone()
    }

    /// Returns the environment variables that address the server, for every kind of store.
    pub fn variables(&self) -> Vec<(String, String)> {
        variables(self.port)
    }

    /// Returns the names of all objects, with their bucket.
    pub fn names(&self) -> Vec<String> {
        self.state().objects.keys().cloned().collect()
    }

    /// Writes all objects below a prefix to a folder.
    pub fn save(&self, prefix: &str, folder: &Path) {
        for (name, (bytes, _)) in &self.state().objects {
            if let Some(name) = name.strip_prefix(prefix) {
                let file = folder.join(name.trim_start_matches('/'));
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, bytes).unwrap();
            }
        }
    }
}

/// Returns the environment variables that address a server on a port.
pub fn variables(port: u16) -> Vec<(String, String)> {
    let url = format!("http://127.0.0.1:{port}");
    let account = format!(
        r#"{{"gcs_base_url": "{url}", "disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}}"#
    );
    [
        ("AWS_ENDPOINT_URL", url.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_TIMEOUT", "2s"),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", &account),
        ("GOOGLE_ALLOW_HTTP", "true"),
        ("GOOGLE_TIMEOUT", "2s"),
        ("AZURITE_BLOB_STORAGE_URL", &url),
        ("AZURE_STORAGE_USE_EMULATOR", "true"),
        ("AZURE_ALLOW_HTTP", "true"),
        ("AZURE_TIMEOUT", "2s"),
    ]
    .map(|(name, value)| (name.to_string(), value.to_string()))
    .to_vec()
}

/// Answers requests until the client closes the connection.
fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(request) = read(&mut reader) {
        let fault = {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            choose_fault(&mut state, &request)
        };
        let response = match fault {
            None => answer(state, &request),
            Some(Fault::Busy) => Response::plain(503),
            Some(Fault::DoneAndBusy) => {
                answer(state, &request);
                Response::plain(503)
            }
            Some(Fault::Conflict) => Response::plain(409),
            Some(Fault::DoneAndRefused) => {
                answer(state, &request);
                Response::plain(412)
            }
            Some(Fault::CutBefore) => return,
            Some(Fault::CutAfter) => {
                answer(state, &request);
                return;
            }
            Some(Fault::Silent) => {
                answer(state, &request);
                std::thread::sleep(Duration::from_secs(3));
                return;
            }
            Some(Fault::Slow) => {
                std::thread::sleep(Duration::from_millis(300));
                answer(state, &request)
            }
        };
        if write(&mut stream, &request, &response).is_none() {
            return;
        }
    }
}

/// Chooses the fault of a request, if any.
fn choose_fault(state: &mut State, request: &Request) -> Option<Fault> {
    state.requests += 1;
    let mut random = seeded(state.seed ^ (state.requests << 20));
    if state.one_in == 0 || below(&mut random, state.one_in) != 0 {
        return None;
    }
    // All faults take turns; those of a put wait for a put.
    if state.queue.is_empty() {
        state.queue = Fault::ALL.to_vec();
    }
    let fits =
        |fault: &Fault| request.method == "PUT" || !matches!(fault, Fault::Conflict | Fault::DoneAndRefused);
    let position = state.queue.iter().position(fits)?;
    let fault = state.queue.remove(position);
    *state.faults.entry(fault).or_default() += 1;
    Some(fault)
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_string(), words.next()?.to_string());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_string());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let key = decoded(path.trim_start_matches('/').trim_start_matches(ACCOUNT).trim_start_matches('/'));
    Some(Request { method, key, query: query.to_string(), headers, body })
}

fn write(stream: &mut TcpStream, request: &Request, response: &Response) -> Option<()> {
    let mut head = format!("HTTP/1.1 {} -\r\nContent-Length: {}\r\n", response.status, response.body.len());
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    if request.method != "HEAD" {
        stream.write_all(&response.body).ok()?;
    }
    stream.flush().ok()
}

fn answer(state: &Mutex<State>, request: &Request) -> Response {
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let dialect = Dialect::of(request);
    match request.method.as_str() {
        "PUT" => {
            let lie = lock().lie;
            let condition = dialect.condition(request).filter(|condition| {
                !matches!(
                    (condition, lie),
                    (Condition::New, Some(Lie::Overwrites)) | (Condition::Unchanged(_), Some(Lie::Changes))
                )
            });
            if condition == Some(Condition::New) && lie == Some(Lie::Races) {
                // The check and the write are separate, so that concurrent puts both succeed.
                if lock().objects.contains_key(&request.key) {
                    return Response::plain(dialect.exists());
                }
                std::thread::sleep(Duration::from_millis(20));
                return put(&mut lock(), request);
            }
            let mut state = lock();
            let known = state.objects.get(&request.key).map(|(_, version)| version.to_string());
            match (condition, known) {
                (Some(Condition::New), Some(_)) => Response::plain(dialect.exists()),
                (Some(Condition::Unchanged(_)), None) => Response::plain(404),
                (Some(Condition::Unchanged(wanted)), Some(known)) if wanted != known => Response::plain(412),
                _ => put(&mut state, request),
            }
        }
        "GET" | "HEAD" if dialect.lists(request) => list(&lock(), request, dialect),
        "GET" | "HEAD" => match lock().objects.get(&request.key) {
            Some((bytes, version)) => {
                let headers = [version_headers(*version), vec![("Last-Modified", LAST_MODIFIED.to_string())]];
                Response { status: 200, headers: headers.concat(), body: bytes.clone() }
            }
            None => Response::plain(404),
        },
        // Bulk deletion.
        "POST" => {
            let (keys, response) = dialect.delete_many(request);
            let mut state = lock();
            for key in keys {
                state.objects.remove(&key);
            }
            response
        }
        "DELETE" => {
            lock().objects.remove(&request.key);
            Response::plain(204)
        }
        _ => Response::plain(405),
    }
}

/// Returns the headers for a version.
fn version_headers(version: u64) -> Vec<(&'static str, String)> {
    vec![("ETag", format!("\"{version}\"")), ("x-goog-generation", version.to_string())]
}

fn put(state: &mut State, request: &Request) -> Response {
    state.version += 1;
    let version = state.version;
    state.objects.insert(request.key.clone(), (request.body.clone(), version));
    Response { status: 200, headers: version_headers(version), body: Vec::new() }
}

fn list(state: &State, request: &Request, dialect: Dialect) -> Response {
    let parameter = |name: &str| {
        let found = request.query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        decoded(found.unwrap_or_default())
    };
    let bucket = format!("{}/", request.key.trim_end_matches('/'));
    let (prefix, delimiter) = (parameter("prefix"), parameter("delimiter"));
    let mut listing = Listing { folders: BTreeSet::new(), objects: Vec::new() };
    for (name, (bytes, version)) in &state.objects {
        let Some(key) = name.strip_prefix(&bucket).filter(|key| key.starts_with(&prefix)) else {
            continue;
        };
        match key[prefix.len()..].split_once('/') {
            Some((folder, _)) if !delimiter.is_empty() => {
                listing.folders.insert(format!("{prefix}{folder}/"));
            }
            _ => listing.objects.push((key, *version, bytes.len())),
        }
    }
    Response {
        status: 200,
        headers: vec![("Content-Type", "application/xml".to_string())],
        body: dialect.listing(&listing).into_bytes(),
    }
}
