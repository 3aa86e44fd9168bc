//! What the runner promises, from the outside.

#[cfg(test)]
mod close;
#[cfg(test)]
mod evidence;
#[cfg(test)]
mod launch;
#[cfg(test)]
mod plan;
#[cfg(test)]
mod readme;
