//! The `tables` source, told as stories: pages, slots, coverage, the window, the feed.

mod answers;
mod config;
mod describe;
mod feed;
mod paging;
mod payloads;
mod support;
mod window;
