//! What planners write and what the environment makes of it.

mod replies;
mod round_trip;
