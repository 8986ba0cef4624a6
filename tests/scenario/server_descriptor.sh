#!/bin/bash
# Proves that the kernel refuses a descriptor that a client sends along.
# Otherwise the daemon's loop would have to close, for example, a TCP socket
# with SO_LINGER. The sender could make the loop, and every other client, wait.

# shellcheck source=tests/lib/scenario.sh
. "$(dirname "$0")/../lib/scenario.sh"

start_daemon || finish
got=$(python3 - "$SOCKET" <<'PYTHON'
import array
import socket
import struct
import sys

SO_PASSRIGHTS = 83
probe = socket.socket(socket.AF_UNIX)
try:
    probe.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS)
except OSError:
    sys.exit("old")
listener = socket.create_server(("127.0.0.1", 0))
sent = socket.create_connection(listener.getsockname())
taken, _ = listener.accept()
sent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
sent.setblocking(False)
try:
    while True:
        sent.send(bytes(65536))
except BlockingIOError:
    pass
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
rights = array.array("i", [sent.fileno()])
try:
    client.sendmsg([b"0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    print("taken")
except PermissionError:
    print("refused")
    # Nobody else has the socket: this process would wait for a minute.
    sent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                    struct.pack("ii", 0, 0))
sent.close()
other = socket.socket(socket.AF_UNIX)
other.settimeout(30)
other.connect(sys.argv[1])
print(other.recv(4096)[4:8].decode())
PYTHON
) 2>"$T/err"
if grep -qx old "$T/err"; then
	skip descriptor 'the kernel has no SO_PASSRIGHTS (Linux 6.16)'
else
	is 'a descriptor is refused, and others are greeted' \
		$'refused\nrefd' "$got"
fi
check 'the daemon stops' stop_daemon
finish
