//! Growth of search trees: effective branching factor, growth by depth, minimal tree.

/// Returns the effective branching factor b*: the root of N = 1 + b + ... + b^d, the width of a uniform tree of depth
/// `depth` with `nodes` nodes (Nilsson, "Problem-solving methods in artificial intelligence", 1971; Russell and
/// Norvig, section 3.6.1). `None` for depth zero or less than one node.
pub fn effective_branching_factor(nodes: f64, depth: u32) -> Option<f64> {
    if depth == 0 || !nodes.is_finite() || nodes < 1.0 {
        return None;
    }
    // The polynomial is increasing and convex for b >= 0, and its last term alone is N at N^(1/d): Newton's steps
    // from there decrease towards the root and stop decreasing only by rounding.
    let mut branching = nodes.powf(1.0 / f64::from(depth));
    loop {
        let (mut value, mut slope) = (1.0, 0.0);
        for _ in 0..depth {
            slope = slope * branching + value;
            value = value * branching + 1.0;
        }
        let next = (branching - (value - nodes) / slope).max(0.0);
        if next < branching {
            branching = next;
        } else {
            return Some(branching);
        }
    }
}

/// Returns the geometric mean of nodes(d) / nodes(d - 1) over consecutive depths. `None` with fewer than two depths
/// or a depth without nodes.
pub fn growth(nodes_by_depth: &[u64]) -> Option<f64> {
    let (first, last) = (*nodes_by_depth.first()?, *nodes_by_depth.last()?);
    if nodes_by_depth.len() < 2 || nodes_by_depth.contains(&0) {
        return None;
    }
    // The product of the ratios telescopes.
    let steps = (nodes_by_depth.len() - 1) as f64;
    Some((last as f64 / first as f64).powf(1.0 / steps))
}

/// Returns the number of leaves of the minimal tree, b^ceil(d/2) + b^floor(d/2) - 1: the fewest that prove the value
/// of a uniform tree (Knuth and Moore, "An analysis of alpha-beta pruning", 1975, corollary of theorem 1).
pub fn minimal_leaves(branching: f64, depth: u32) -> f64 {
    let (longer, shorter) = (depth.div_ceil(2), depth / 2);
    branching.powf(f64::from(longer)) + branching.powf(f64::from(shorter)) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes_of_uniform_tree(branching: f64, depth: u32) -> f64 {
        (0..=depth).map(|level| branching.powi(level as i32)).sum()
    }

    #[test]
    fn branching_factor_inverts_the_uniform_tree() {
        for depth in [1, 2, 3, 5, 10, 20, 60] {
            for branching in [0.0, 0.01, 0.5, 0.999, 1.0, 1.001, 1.5, 2.0, 6.0, 35.0, 400.0] {
                let nodes = nodes_of_uniform_tree(branching, depth);
                let found = effective_branching_factor(nodes, depth).unwrap();
                // For a tiny b the rounding of N limits the precision.
                assert!((found - branching).abs() < 1e-9 * branching + 1e-15, "{branching}^{depth}: {found}");
            }
        }
    }

    #[test]
    fn branching_factor_of_known_trees() {
        // Russell and Norvig's example: 52 nodes at depth 5 are a branching factor of 1.92.
        let example = effective_branching_factor(53.0, 5).unwrap();
        assert!((example - 1.92).abs() < 0.005, "{example}");
        for (nodes, depth) in [(10.0, 0), (0.5, 3), (f64::NAN, 3), (f64::INFINITY, 3)] {
            assert_eq!(effective_branching_factor(nodes, depth), None);
        }
        assert!(effective_branching_factor(f64::MAX, 300).unwrap().is_finite(), "the sum overflows");
    }

    #[test]
    fn growth_is_geometric_mean_of_ratios() {
        assert_eq!(growth(&[1, 3, 9, 27]), Some(3.0));
        let (unequal, product) = (growth(&[2, 10, 20, 90]).unwrap(), 5.0_f64 * 2.0 * 4.5);
        assert!((unequal - product.powf(1.0 / 3.0)).abs() < 1e-12);
        for none in [&[][..], &[4], &[0, 3], &[3, 0, 9]] {
            assert_eq!(growth(none), None);
        }
    }

    #[test]
    fn minimal_leaves_match_knuth_and_moore() {
        for (branching, depth, leaves) in
            [(3.0, 0, 1.0), (3.0, 1, 3.0), (3.0, 2, 5.0), (3.0, 3, 11.0), (24.0, 4, 1151.0)]
        {
            assert_eq!(minimal_leaves(branching, depth), leaves);
        }
    }
}
