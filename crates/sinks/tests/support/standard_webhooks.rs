//! A receiver's own view of a signature, by the Standard Webhooks specification.
#![allow(unreachable_pub, reason = "test files of several crates use it")]

use sha2::{Digest, Sha256};
use stakeout_sim::Seen;

/// Checks a webhook as the specification tells a receiver to; answers its id. Written from the specification, with nothing
/// of what signs: only SHA-256 itself is borrowed.
pub fn verified(seen: &Seen, secret: &str, now_secs: u64) -> Result<String, String> {
    let header = |name: &str| seen.header(name).ok_or(format!("no {name}"));
    let (id, timestamp) = (header("webhook-id")?, header("webhook-timestamp")?);
    let at: u64 = timestamp.parse().map_err(|_| format!("timestamp {timestamp}"))?;
    if at.abs_diff(now_secs) > 300 {
        return Err(format!("{at} is too far from {now_secs}"));
    }
    let key = decode(secret.strip_prefix("whsec_").ok_or("no whsec_")?);
    let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", &seen.body].concat();
    let expected = hmac(&key, &signed);
    let good = header("webhook-signature")?.split(' ').any(|signature| match signature.split_once(',') {
        Some(("v1", code)) => decode(code) == expected,
        _ => false,
    });
    if good { Ok(id.to_owned()) } else { Err("no signature fits".to_owned()) }
}

/// RFC 2104 with SHA-256.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = [0u8; 64];
    assert!(key.len() <= 64, "longer keys would be hashed first; none of ours is");
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().to_vec()
}

/// RFC 4648, with padding.
fn decode(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0u32;
    let mut count = 0;
    let mut bytes = Vec::new();
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let digit = digits.iter().position(|digit| *digit == byte).expect("a digit of Base64");
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
