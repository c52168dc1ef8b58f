//! Principal variations: the best line below each ply of the current path.

/// One line a ply, each allocated once and reused.
#[derive(Clone, Debug)]
pub struct Lines<M> {
    lines: Vec<Vec<M>>,
}

impl<M: Copy> Lines<M> {
    /// Creates room for lines of this many plies.
    pub fn new(plies: usize) -> Lines<M> {
        Lines { lines: (0..=plies).map(|_| Vec::new()).collect() }
    }

    /// Nothing is known below this ply yet.
    #[inline]
    pub fn clear(&mut self, ply: usize) {
        self.lines[ply].clear();
    }

    /// The best line from this ply is this move and the best line after it.
    #[inline]
    pub fn extend(&mut self, ply: usize, mv: M) {
        let [line, rest] = &mut self.lines[ply..ply + 2] else { return };
        line.clear();
        line.push(mv);
        line.extend_from_slice(rest);
    }

    /// The best line from the root.
    pub fn best(&self) -> &[M] {
        &self.lines[0]
    }

    /// Makes this the best line from the root.
    pub fn set_best(&mut self, line: &[M]) {
        self.lines[0].clear();
        self.lines[0].extend_from_slice(line);
    }
}
