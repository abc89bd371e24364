//! A server that does what a test wants, above all a broker.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of this")]

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What a flood ends with if nobody ends it before: more than anybody should have read.
pub const FLOOD_BYTES_MAX: usize = 64 << 20;
/// What may be on its way, sent and not read: the buffers of two sockets.
pub const SLACK_BYTES: usize = 8 << 20;

/// Somewhere to connect to.
pub struct Rogue {
    listener: TcpListener,
    pub port: u16,
}

impl Rogue {
    pub async fn new() -> Rogue {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let port = listener.local_addr().expect("an address").port();
        Rogue { listener, port }
    }

    /// The next who connects.
    pub async fn meet(&self) -> Talk {
        let (stream, _) = self.listener.accept().await.expect("somebody");
        Talk::over(stream)
    }
}

/// A connection, as the server sees it.
pub struct Talk<S = TcpStream> {
    pub stream: BufReader<S>,
}

/// What was published.
pub struct Published {
    pub reply: String,
    /// Its headers and its content.
    pub text: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Talk<S> {
    pub fn over(stream: S) -> Talk<S> {
        Talk { stream: BufReader::new(stream) }
    }

    pub async fn say(&mut self, words: &str) {
        self.stream.get_mut().write_all(words.as_bytes()).await.expect("they listen");
    }

    /// The next line, without its end.
    pub async fn line(&mut self) -> String {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).await.expect("a line");
        String::from_utf8(line).expect("UTF-8").trim_end().to_owned()
    }

    /// Says it again and again, until they hang up or it is enough; how many bytes that were.
    pub async fn flood(&mut self, words: &[u8]) -> usize {
        let many = words.repeat((64 << 10) / words.len());
        let mut sent = 0;
        while sent < FLOOD_BYTES_MAX {
            match self.stream.get_mut().write(&many[sent % words.len()..]).await {
                Ok(written) => sent += written,
                Err(_) => break,
            }
        }
        sent
    }

    /// Waits until they hang up; what they say before that is not listened to.
    pub async fn ended(&mut self) {
        let mut rest = [0; 4096];
        while self.stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    }

    /// Says the same again and again; it is hung up on when so much of it was read, give or take what was on its way.
    pub async fn hung_up_on_after(mut self, limit: usize, saying: &str) {
        let sent = self.flood(saying.as_bytes()).await;
        assert!(sent < limit + SLACK_BYTES, "{sent} bytes of {saying:?} were sent, expected {limit} at most");
    }
}

/// As a broker.
impl Talk {
    pub async fn introduce(&mut self, info: &str) {
        self.say(&format!("INFO {info}\r\n")).await;
    }

    /// Introduces itself, takes large messages, and lets them in.
    pub async fn let_in(&mut self) {
        self.introduce(&format!("{{\"max_payload\":{}}}", 2 * FLOOD_BYTES_MAX)).await;
        assert!(self.line().await.starts_with("CONNECT {"));
        assert_eq!(self.line().await, "PING");
        self.say("PONG\r\n").await;
        assert!(self.line().await.starts_with("SUB _INBOX."));
    }

    /// They want to know whether the stream is there; where the answer goes to.
    pub async fn asked_for_the_stream(&mut self) -> String {
        let line = self.line().await;
        let words: Vec<&str> = line.split(' ').collect();
        let ["PUB", "$JS.API.STREAM.INFO.STAKEOUT", reply, "0"] = words[..] else { panic!("{line}") };
        assert_eq!(self.line().await, "");
        reply.to_owned()
    }

    /// The stream is there.
    pub async fn has_the_stream(&mut self) {
        let reply = self.asked_for_the_stream().await;
        self.answer(&reply, r#"{"config":{"name":"STAKEOUT"}}"#).await;
    }

    pub async fn answer(&mut self, reply: &str, words: &str) {
        self.say(&format!("MSG {reply} 1 {}\r\n{words}\r\n", words.len())).await;
    }

    pub async fn published(&mut self) -> Published {
        let line = self.line().await;
        let words: Vec<&str> = line.split(' ').collect();
        let ["HPUB", _, reply, _, total] = words[..] else { panic!("{line}") };
        let mut content = vec![0; total.parse::<usize>().expect("a number") + 2];
        self.stream.read_exact(&mut content).await.expect("a message");
        Published { reply: reply.to_owned(), text: String::from_utf8(content).expect("UTF-8") }
    }
}
