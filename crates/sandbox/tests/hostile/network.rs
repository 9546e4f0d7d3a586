//! Other machines, this machine's servers, and raw packets.

use std::{
    io::ErrorKind,
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
};

use crate::common::{ALL, ATTEMPT, at, reaches_nothing};

#[tokio::test]
async fn row_12_there_is_no_network() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let named = UnixListener::bind(&path).unwrap();
    let abstract_name = format!("etude-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
    let nameless = UnixListener::bind_addr(&address).unwrap();
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    named.set_nonblocking(true).unwrap();
    nameless.set_nonblocking(true).unwrap();
    open_to_all(folder.path());
    open_to_all(&path);
    for sandbox in at(ALL) {
        let source = format!(
            "{ATTEMPT}
def tcp(host, port, family=socket.AF_INET):
    s = socket.socket(family); s.settimeout(1); s.connect((host, port)); return 'connected'
def udp(host, port, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM); return s.sendto(b'x', (host, port))
def local(name):
    s = socket.socket(socket.AF_UNIX); s.connect(name); return 'connected'
def fast_open(port):
    s = socket.socket(); return s.sendto(b'x', 0x20000000, ('127.0.0.1', port))
def served():
    s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); c = socket.create_connection(s.getsockname(), 1)
    return 'connected'
attempt(
    lambda: tcp('127.0.0.1', {tcp_port}), lambda: udp('127.0.0.1', {udp_port}), lambda: fast_open({tcp_port}),
    lambda: tcp('::1', {tcp_port}, socket.AF_INET6), lambda: udp('::1', {udp_port}, socket.AF_INET6),
    lambda: tcp('1.1.1.1', 80), lambda: tcp('169.254.169.254', 80), lambda: udp('8.8.8.8', 53),
    lambda: tcp('0.0.0.0', {tcp_port}), lambda: udp('255.255.255.255', 9), served,
    lambda: socket.create_connection(('example.com', 80), 1), lambda: local('{path}'),
    lambda: local('\\0{abstract_name}'), lambda: socket.socket(40, socket.SOCK_STREAM).connect((2, 1)),
)",
            tcp_port = tcp.local_addr().unwrap().port(),
            udp_port = udp.local_addr().unwrap().port(),
            path = path.display(),
        );
        reaches_nothing(&sandbox, &source).await;
    }
    // What the host heard.
    assert_eq!(tcp.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(
        udp.recv(&mut [0; 9]).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    assert_eq!(named.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(nameless.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

fn open_to_all(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}

#[tokio::test]
async fn row_13_packets_cannot_be_made_or_seen() {
    for sandbox in at(ALL) {
        let source = format!(
            "{ATTEMPT}
raw = lambda family, kind, protocol=0: lambda: socket.socket(family, kind, protocol)
attempt(
    raw(socket.AF_INET, socket.SOCK_RAW, 1), raw(socket.AF_INET, socket.SOCK_RAW, 255),
    raw(socket.AF_INET6, socket.SOCK_RAW, 58), raw(socket.AF_PACKET, socket.SOCK_RAW, 768),
    raw(socket.AF_PACKET, socket.SOCK_DGRAM, 768), lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).bind((0, 0xffff)),
    lambda: open('/dev/net/tun', 'r+b'), lambda: open('/proc/sys/net/ipv4/ip_forward', 'w').write('1'),
)"
        );
        reaches_nothing(&sandbox, &source).await;
    }
}
