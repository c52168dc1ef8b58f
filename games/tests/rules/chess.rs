use crate::harness::Variant;
pub const VARIANTS: &[Variant] = &[("chess", 10)];
