//! Allocations whose size a player chooses.

/// Reserves room for exactly `additional` more elements. Panics with the purpose if there is no memory: a failed allocation
/// would abort the process, but a panic ends only the game.
pub(crate) fn reserve<T>(elements: &mut Vec<T>, additional: usize, purpose: impl FnOnce() -> String) {
    if elements.try_reserve_exact(additional).is_err() {
        panic!("not enough memory for {}; choose a smaller one, or play on a larger machine", purpose());
    }
}
