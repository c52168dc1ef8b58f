//! A process that answers lines on standard output.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use agon_testing::binary;

pub struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Session {
    /// Starts `agon engine serve`.
    pub fn serve(arguments: &[&str]) -> Session {
        Session::start(Command::new(binary::path()).args(["engine", "serve"]).args(arguments))
    }

    pub fn start(command: &mut Command) -> Session {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Session { input: child.stdin.take(), output, child }
    }

    pub fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Returns the next line.
    pub fn line(&mut self) -> String {
        self.output.next().expect("the process ended early").unwrap()
    }

    /// Returns the lines up to one that begins with `start`, inclusive.
    pub fn until(&mut self, start: &str) -> Vec<String> {
        let mut lines = vec![self.line()];
        while !lines.last().unwrap().starts_with(start) {
            lines.push(self.line());
        }
        lines
    }

    /// Closes the input, waits for the end, and returns the exit code and the rest of the output.
    pub fn finish(mut self) -> (i32, Vec<String>) {
        drop(self.input.take());
        let rest = self.output.by_ref().map(Result::unwrap).collect();
        (self.child.wait().unwrap().code().unwrap(), rest)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
