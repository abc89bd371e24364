//! Where a sink may connect to: a name is resolved once, every address it has is checked, and the connection goes to a
//! checked address.
//!
//! Otherwise whoever may name a receiver, or runs its name server, could reach what only this machine can reach: its own
//! ports, the local network, the cloud's metadata. Hosts that the configuration allows by name are not checked.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Which hosts may be connected to whatever their addresses are, and who knows the addresses.
#[derive(Clone)]
pub struct Guard {
    allowed: Arc<[String]>,
    names: Arc<dyn Names>,
}

/// Who knows where hosts are.
#[async_trait]
pub trait Names: Send + Sync + 'static {
    /// The addresses of a host, with this port.
    async fn find(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The system, with its files and its name servers.
#[derive(Clone, Copy, Debug)]
pub struct System;

#[async_trait]
impl Names for System {
    async fn find(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

/// An address that nobody allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressRefused {
    /// It is not one of the public internet.
    #[error("{host} is at {address}, which is {what}: allow = [\"{host}\"] permits it")]
    Inside {
        /// The host, as the configuration names it.
        host: String,
        /// Where it is.
        address: IpAddr,
        /// What sort of address that is.
        what: &'static str,
    },
    /// Nobody knows where it is.
    #[error("{host} cannot be found: {error}")]
    Unknown {
        /// The host.
        host: String,
        /// What the resolver said.
        error: String,
    },
}

impl Guard {
    /// Allows these hosts, by name or by address, and asks `names` where hosts are.
    pub fn new(allow: &[String], names: Arc<dyn Names>) -> Guard {
        Guard { allowed: allow.iter().map(|host| plain(host)).collect(), names }
    }

    /// Whether a host is allowed whatever its addresses are.
    pub fn allows(&self, host: &str) -> bool {
        self.allowed.contains(&plain(host))
    }

    /// Checks a host that is an address itself; names are checked when they are resolved.
    pub fn check_literal(&self, host: &str) -> Result<(), AddressRefused> {
        match plain(host).parse() {
            Ok(address) => self.check(host, address),
            Err(_) => Ok(()),
        }
    }

    fn check(&self, host: &str, address: IpAddr) -> Result<(), AddressRefused> {
        match inside(address) {
            Some(what) if !self.allows(host) => {
                Err(AddressRefused::Inside { host: plain(host), address, what })
            }
            _ => Ok(()),
        }
    }

    /// The addresses of a host, all of them checked: one that is not allowed spoils them all.
    pub async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, AddressRefused> {
        let unknown = |error: String| AddressRefused::Unknown { host: plain(host), error };
        let name = plain(host);
        let found = self.names.find(&name, port).await.map_err(|error| unknown(error.to_string()))?;
        if found.is_empty() {
            return Err(unknown("it has no address".to_owned()));
        }
        for address in &found {
            self.check(host, address.ip())?;
        }
        Ok(found)
    }
}

/// As the HTTP client asks: what it gets is what it connects to.
impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let found = Guard::resolve(&guard, name.as_str(), 0).await.map_err(io::Error::other)?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// A host without the brackets of an address, the dot of the root and capitals.
pub(crate) fn plain(host: &str) -> String {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.trim_end_matches('.').to_ascii_lowercase()
}

/// What sort of address it is, if it is not one of the public internet.
fn inside(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) => inside_v4(v4),
        IpAddr::V6(v6) => inside_v6(v6),
    }
}

fn inside_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (0, ..) => Some("unspecified"),
        (127, ..) => Some("loopback"),
        // Azure's agents and metadata: a public address that is none.
        (168, 63, 129) if address.octets()[3] == 16 => Some("the host of a cloud"),
        (169, 254, _) => Some("link-local, where clouds keep their metadata"),
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => Some("private"),
        (100, 64..=127, _) => Some("shared by a carrier"),
        (192, 0, 0) | (192, 0, 2) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => Some("reserved"),
        (192, 88, 99) => Some("a relay"),
        (224..=239, ..) => Some("multicast"),
        (240.., ..) => Some("reserved"),
        _ => None,
    }
}

fn inside_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(v4) = v4_within(address) {
        return inside_v4(v4);
    }
    let segments = address.segments();
    match (segments[0], segments[1]) {
        _ if address.is_unspecified() => Some("unspecified"),
        _ if address.is_loopback() => Some("loopback"),
        (0xfe80..=0xfebf, _) => Some("link-local"),
        (0xfec0..=0xfeff, _) => Some("site-local"),
        (0xfc00..=0xfdff, _) => Some("private (unique local)"),
        (0xff00..=0xffff, _) => Some("multicast"),
        // NAT64 for local use, discard-only, Teredo, benchmarking, documentation.
        (0x0064, 0xff9b) | (0x0100, 0) | (0x2001, 0) | (0x2001, 2) | (0x2001, 0xdb8) | (0x3fff, _) => {
            Some("reserved")
        }
        (0x2000..=0x3fff, _) => None,
        _ => Some("reserved"),
    }
}

/// The IPv4 address that an IPv6 one leads to: mapped, compatible, through NAT64 or 6to4.
fn v4_within(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match s {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => Some(v4(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => Some(v4(high, low)),
        [0x0064, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_outside() {
        let inner = [
            "127.0.0.1",
            "127.8.9.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "168.63.129.16",
            "100.64.0.1",
            "100.127.255.255",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "fe80::1",
            "fec0::1",
            "fd00:ec2::254",
            "fc00::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "100::1",
            "4000::1",
        ];
        for address in inner {
            assert!(inside(address.parse().expect(address)).is_some(), "{address} is inside");
        }
        let outer = [
            "1.1.1.1",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "169.253.1.1",
            "168.63.129.17",
            "223.255.255.1",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ];
        for address in outer {
            assert_eq!(inside(address.parse().expect(address)), None, "{address} is outside");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_inside_is_refused_unless_it_is_allowed() {
        let guard = |allow: &[&str]| {
            let allow: Vec<String> = allow.iter().map(|&host| host.to_owned()).collect();
            Guard::new(&allow, Arc::new(System))
        };
        let closed = guard(&[]);
        let refused = closed.resolve("localhost", 80).await.expect_err("refused");
        assert!(matches!(&refused, AddressRefused::Inside { host, .. } if host == "localhost"), "{refused}");
        assert!(refused.to_string().contains("allow = [\"localhost\"]"), "{refused}");
        let open = guard(&["LocalHost."]);
        assert!(open.resolve("localhost", 80).await.is_ok_and(|found| !found.is_empty()));
        // Allowed is the name, not where it leads: another name for the same place is another matter.
        assert!(open.resolve("127.0.0.1", 80).await.is_err());
        assert!(open.check_literal("[::1]").is_err());
        assert!(guard(&["::1"]).check_literal("[::1]").is_ok());
        assert!(closed.check_literal("example.org").is_ok(), "a name is checked when it is resolved");
    }
}
