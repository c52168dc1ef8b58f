//! Principal variations: the best line below each ply of the current path.

/// A line for each ply, allocated once and reused.
#[derive(Clone, Debug)]
pub struct PvTable<M> {
    lines: Vec<Vec<M>>,
}

impl<M: Copy> PvTable<M> {
    /// Creates a table for lines of at most `plies` plies.
    pub fn new(plies: usize) -> PvTable<M> {
        PvTable { lines: (0..=plies).map(|_| Vec::new()).collect() }
    }

    /// Empties the line at `ply`.
    #[inline]
    pub fn clear(&mut self, ply: usize) {
        self.lines[ply].clear();
    }

    /// Sets the line at `ply` to `mv` followed by the line at the next ply.
    #[inline]
    pub fn extend(&mut self, ply: usize, mv: M) {
        let [line, rest] = &mut self.lines[ply..ply + 2] else { return };
        line.clear();
        line.push(mv);
        line.extend_from_slice(rest);
    }

    /// Returns the line from the root.
    pub fn best(&self) -> &[M] {
        &self.lines[0]
    }

    /// Replaces the line from the root.
    pub fn set_best(&mut self, line: &[M]) {
        self.lines[0].clear();
        self.lines[0].extend_from_slice(line);
    }
}
