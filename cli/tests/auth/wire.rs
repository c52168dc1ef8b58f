//! Raw sockets, HTTP/2 frames and HTTP requests.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Connects with short timeouts.
pub fn socket(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    stream
}

/// Returns whether the peer has closed the connection.
pub fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
const PING: [u8; 17] = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];

/// Sends pings without reading the answers until the connection accepts no more.
pub fn ping_until_stuck(stream: &mut TcpStream) {
    stream.write_all(&[PREFACE, &SETTINGS].concat()).unwrap();
    let pings = PING.repeat(4000);
    while stream.write_all(&pings).is_ok() {}
}

/// Returns the value of a series on the metrics page.
pub fn metric(port: u16, line: &str) -> Option<f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    let found = page.lines().find_map(|read| read.strip_prefix(line)?.strip_prefix(' '));
    found.and_then(|number| number.parse().ok())
}
