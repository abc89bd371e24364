//! `stakeout`: watches systems that have no webhooks.

use std::process::ExitCode;

// Many small, short-lived allocations on many threads: measurably faster than the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    stakeout::main()
}
