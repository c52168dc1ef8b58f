//! A server that speaks as much S3 as a dataset needs, keeps objects in memory, and can be told to misbehave.
//!
//! One thread a connection. An honest server keeps the conditions of a put in one step under its lock. Faults are drawn
//! from a seed, request by request; a liar breaks one promise always.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agon_games::random::{below, seeded};

/// What happens to a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// It is answered with 503 and changes nothing.
    Busy,
    /// It is done, and answered with 503.
    DoneAndBusy,
    /// A put is answered with 409 and changes nothing: somebody else is writing, says the store.
    Conflict,
    /// It is done, and a put is answered with 412: something on the way has sent it twice.
    DoneAndRefused,
    /// The connection ends before it is done.
    CutBefore,
    /// It is done, and the connection ends without an answer.
    CutAfter,
    /// It is done slowly.
    Slow,
    /// It is done, and never answered.
    Silent,
}

impl Fault {
    /// All of them.
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
    /// A put that must only make an object writes over one.
    Overwrites,
    /// The same, but only for puts that come at the same moment: it looks, and then it writes.
    Races,
    /// A put that must only change what was read changes anything.
    Changes,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, (Vec<u8>, u64)>,
    /// The number of the last version.
    version: u64,
    requests: u64,
    /// One request in so many meets a fault; none at 0.
    one_in: usize,
    seed: u64,
    /// Faults whose turn it is.
    turns: Vec<Fault>,
    faults: BTreeMap<Fault, u64>,
    lie: Option<Lie>,
}

/// The server, as long as this lives.
pub struct Server {
    port: u16,
    state: Arc<Mutex<State>>,
}

struct Request {
    method: String,
    /// The object, with its bucket.
    key: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct Response {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Response {
    fn plain(status: u16) -> Response {
        Response { status, headers: Vec::new(), body: Vec::new() }
    }
}

impl Server {
    /// Starts an honest server without objects.
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

    /// A server that breaks a promise.
    pub fn lying(lie: Lie) -> Server {
        let server = Server::start();
        server.state().lie = Some(lie);
        server
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets one request in so many go wrong from now on, or none.
    pub fn misbehave(&self, one_in: usize, seed: u64) {
        let mut state = self.state();
        (state.one_in, state.seed) = (one_in, seed);
    }

    /// What went wrong so far, and how often.
    pub fn faults(&self) -> BTreeMap<Fault, u64> {
        self.state().faults.clone()
    }

    /// The variables by which programs find it.
    pub fn variables(&self) -> Vec<(String, String)> {
        [
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_ALLOW_HTTP", "true".to_string()),
            ("AWS_ACCESS_KEY_ID", "key".to_string()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_string()),
            ("AWS_REGION", "us-east-1".to_string()),
            ("AWS_TIMEOUT", "2s".to_string()),
        ]
        .map(|(name, value)| (name.to_string(), value))
        .to_vec()
    }

    /// The names of all objects, with their bucket.
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

/// Answers requests until the other side has had enough.
fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(request) = read(&mut reader) {
        let fault = {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            draw(&mut state, &request)
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

/// Whether a request meets a fault, and which.
fn draw(state: &mut State, request: &Request) -> Option<Fault> {
    state.requests += 1;
    let mut random = seeded(state.seed ^ (state.requests << 20));
    if state.one_in == 0 || below(&mut random, state.one_in) != 0 {
        return None;
    }
    // All of them in turns; what can only happen to a put waits for one.
    if state.turns.is_empty() {
        state.turns = Fault::ALL.to_vec();
    }
    let fits =
        |fault: &Fault| request.method == "PUT" || !matches!(fault, Fault::Conflict | Fault::DoneAndRefused);
    let place = state.turns.iter().position(fits)?;
    let fault = state.turns.remove(place);
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
    let key = decoded(path.trim_start_matches('/'));
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

/// A text with its per cent signs resolved.
fn decoded(text: &str) -> String {
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

fn answer(state: &Mutex<State>, request: &Request) -> Response {
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    match request.method.as_str() {
        "PUT" => {
            let lie = lock().lie;
            let only_new = request.headers.contains_key("if-none-match") && lie != Some(Lie::Overwrites);
            if only_new && lie == Some(Lie::Races) {
                // It looks, thinks, and writes: two that look at once both write.
                if lock().objects.contains_key(&request.key) {
                    return Response::plain(412);
                }
                std::thread::sleep(Duration::from_millis(20));
                return put(&mut lock(), request);
            }
            let mut state = lock();
            let known = state.objects.get(&request.key).map(|(_, version)| tag(*version));
            if only_new && known.is_some() {
                return Response::plain(412);
            }
            match request.headers.get("if-match") {
                Some(_) if lie == Some(Lie::Changes) => {}
                Some(_) if known.is_none() => return Response::plain(404),
                Some(wanted) if known.as_ref() != Some(wanted) => return Response::plain(412),
                Some(_) | None => {}
            }
            put(&mut state, request)
        }
        "GET" | "HEAD" if request.query.contains("list-type=2") => list(&lock(), request),
        "GET" | "HEAD" => match lock().objects.get(&request.key) {
            Some((bytes, version)) => Response {
                status: 200,
                headers: vec![
                    ("ETag", tag(*version)),
                    ("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT".to_string()),
                ],
                body: bytes.clone(),
            },
            None => Response::plain(404),
        },
        // Several at once, as lists of keys.
        "POST" => {
            let text = String::from_utf8_lossy(&request.body).into_owned();
            let keys = text.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
            let mut body = "<DeleteResult>".to_string();
            for key in keys {
                lock().objects.remove(&format!("{}/{key}", request.key.trim_end_matches('/')));
                body.push_str(&format!("<Deleted><Key>{key}</Key></Deleted>"));
            }
            body.push_str("</DeleteResult>");
            Response { status: 200, headers: Vec::new(), body: body.into_bytes() }
        }
        "DELETE" => {
            lock().objects.remove(&request.key);
            Response::plain(204)
        }
        _ => Response::plain(405),
    }
}

fn tag(version: u64) -> String {
    format!("\"{version}\"")
}

fn put(state: &mut State, request: &Request) -> Response {
    state.version += 1;
    let version = state.version;
    state.objects.insert(request.key.clone(), (request.body.clone(), version));
    Response { status: 200, headers: vec![("ETag", tag(version))], body: Vec::new() }
}

fn list(state: &State, request: &Request) -> Response {
    let parameter = |name: &str| {
        let found = request.query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        decoded(found.unwrap_or_default())
    };
    let bucket = request.key.trim_end_matches('/');
    let (prefix, delimiter) = (parameter("prefix"), parameter("delimiter"));
    let mut folders = std::collections::BTreeSet::new();
    let mut body = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_string();
    for (name, (bytes, version)) in &state.objects {
        let Some(key) = name.strip_prefix(&format!("{bucket}/")).filter(|key| key.starts_with(&prefix))
        else {
            continue;
        };
        match key[prefix.len()..].split_once('/') {
            Some((folder, _)) if !delimiter.is_empty() => {
                folders.insert(format!("{prefix}{folder}/"));
            }
            _ => body.push_str(&format!(
                "<Contents><Key>{key}</Key><LastModified>2015-10-21T07:28:00.000Z</LastModified><ETag>{}</ETag>\
                 <Size>{}</Size></Contents>",
                tag(*version).replace('"', "&quot;"),
                bytes.len()
            )),
        }
    }
    for folder in folders {
        body.push_str(&format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"));
    }
    body.push_str("</ListBucketResult>");
    Response {
        status: 200,
        headers: vec![("Content-Type", "application/xml".to_string())],
        body: body.into_bytes(),
    }
}
