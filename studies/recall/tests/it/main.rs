//! Episodes of the study, played with policies that say what they are told to.

mod episodes;
mod fixture;
mod four_roles;
mod gold;
