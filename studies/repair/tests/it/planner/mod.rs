//! What planners write, what the environment makes of it, and whole episodes.

mod episodes;
mod exploring;
mod guards;
mod limits;
mod pointing;
mod proposals;
mod remembering;
mod replies;
mod round_trip;
mod stage;
mod whole;
