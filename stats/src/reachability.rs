//! Reachability in a directed graph of players, such as "scored against".

/// The transitive closure of a graph, a row of bits for each node.
pub(crate) struct Reachability {
    rows: Vec<Vec<u64>>,
}

impl Reachability {
    /// Closes a graph of `nodes` nodes by Warshall's algorithm. A node reaches itself only through an edge.
    pub fn new(nodes: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut rows = vec![vec![0u64; nodes.div_ceil(64)]; nodes];
        for (from, to) in edges {
            rows[from][to / 64] |= 1 << (to % 64);
        }
        for through in 0..nodes {
            let via = rows[through].clone();
            for row in &mut rows {
                if row[through / 64] >> (through % 64) & 1 == 1 {
                    row.iter_mut().zip(&via).for_each(|(word, via)| *word |= via);
                }
            }
        }
        Reachability { rows }
    }

    /// Returns whether there is a path.
    pub fn reaches(&self, from: usize, to: usize) -> bool {
        self.rows[from][to / 64] >> (to % 64) & 1 == 1
    }

    /// Returns whether there is a path in both directions.
    pub fn mutual(&self, one: usize, other: usize) -> bool {
        self.reaches(one, other) && self.reaches(other, one)
    }
}
