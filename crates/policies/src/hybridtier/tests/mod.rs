//! HybridTier
