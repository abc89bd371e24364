//! The simulated upstreams as a client sees them: every act, the server's life, the benchmark server.

mod acts;
mod client;
mod fast;
mod life;
mod script;
