//! The nouns of the protocol: what can be true, without what may happen.
