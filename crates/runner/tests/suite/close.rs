//! A close commits what is the claim's and green, says no to the rest, and survives being cut off anywhere.

mod acts;
mod crash;
mod evidence;
mod landing;
mod whose;
mod world;
