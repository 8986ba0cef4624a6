"""Servers that break connections and answers, for tests of clients.

A script has one step per line:

    hello [STATE]      the first message of a connection
    read               reads a request; {id} and {txid} are then of this request
    answer KIND BODY   answers this request; BODY is PACKET|..., with ^ for NUL
    message PACKET|... sends any message
    raw TEXT           sends bytes; \\n and the like as in Python
    flood TEXT         sends bytes again and again until the client hangs up
    pour MIB PACKET|...   sends packets, the last one filled up, again and again
                       until the client hangs up. If the client has not done so
                       before MIB MiB, `heard` gets the word "toomuch"
    close              hangs up, and accepts the next connection
    refuse             closes the socket: no further connection
    hang               reads until the client hangs up

The script begins with an accepted connection. `relay SOCKET` passes
everything between the client and a daemon, except the first answer behind
hello: the server reads this answer and hangs up instead. Later connections are
relayed whole.
"""
import socket
import threading

HELLO = ("refd version=2|software fake|state {state}|horizon 0|pid 1|"
         "limit updates=100000 bytes=67108864")
SIZE = 1 << 16


def packets(text):
    """A message: the packets of TEXT, separated by bars, and a flush."""
    data = b""
    for one in text.split("|"):
        payload = one.replace("^", "\0").encode("latin-1")
        data += b"%04x%s" % (len(payload) + 4, payload)
    return data + b"0000"


def read_message(file):
    """The packets of a message, or None at the end of the connection."""
    found = []
    while True:
        digits = file.read(4)
        if len(digits) < 4:
            return None
        length = int(digits, 16)
        if length == 0:
            return found
        if length > 4:
            found.append(file.read(length - 4))


class Server:
    """Runs a script. The requests that came are in `heard`, by verb."""

    def __init__(self, path, lines):
        self.heard = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(16)
        self._lines = lines
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        self._thread.join(30)

    def _run(self):
        try:
            self._play()
        except OSError:
            pass  # the client hung up, or stop()

    def _play(self):
        self._accept()
        for line in self._lines:
            word, _, rest = line.partition(" ")
            getattr(self, "_" + word)(rest)
            if word == "refuse":
                return
        self._hang("")

    def _accept(self):
        self._peer, _ = self._listener.accept()
        self._file = self._peer.makefile("rb")
        self._id, self._txid = 0, ""

    def _hello(self, state):
        self._peer.sendall(packets(HELLO.format(state=state or "serving")))

    def _read(self, _):
        request = read_message(self._file)
        if request is None:
            self.heard.append("end")
            return
        verb, number = request[0].decode().split(" ")
        self.heard.append(verb)
        self._id = number
        for line in request[1:]:
            if line.startswith(b"txid "):
                self._txid = line[5:].decode()

    def _answer(self, text):
        kind, _, body = text.partition(" ")
        self._message("|".join(["answer {id} " + kind, "txid {txid}"] +
                               ([body] if body else [])))

    def _message(self, text):
        self._peer.sendall(packets(text.format(id=self._id,
                                               txid=self._txid)))

    def _raw(self, text):
        self._peer.sendall(text.encode().decode("unicode_escape").encode())

    def _flood(self, text):
        data = text.encode() * (SIZE // len(text))
        try:
            while True:
                self._peer.sendall(data)
        except OSError:
            pass

    def _pour(self, text):
        most, _, text = text.partition(" ")
        *head, last = text.format(id=self._id, txid=self._txid).split("|")
        if head:
            self._peer.sendall(packets("|".join(head))[:-4])
        data = packets(last + "x" * 60000)[:-4]
        try:
            for _ in range((int(most) << 20) // len(data)):
                self._peer.sendall(data)
            self.heard.append("toomuch")
        except OSError:
            pass

    def _close(self, _):
        self._file.close()
        self._peer.close()
        self._accept()

    def _refuse(self, _):
        self._listener.close()
        self._file.close()
        self._peer.close()

    def _hang(self, _):
        while self._file.read(SIZE):
            pass

    def _relay(self, path):
        with socket.socket(socket.AF_UNIX) as daemon:
            daemon.connect(path)
            answers = daemon.makefile("rb")
            read_message(answers)
            self._hello("")
            request = b""
            while not request.endswith(b"0000"):
                request += self._peer.recv(SIZE)
            daemon.sendall(request)
            read_message(answers)
        while True:
            self._close("")
            with socket.socket(socket.AF_UNIX) as daemon:
                daemon.connect(path)
                self._pass_both_ways(daemon)

    def _pass_both_ways(self, daemon):
        def pass_on():
            try:
                while data := self._peer.recv(SIZE):
                    daemon.sendall(data)
                daemon.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        threading.Thread(target=pass_on, daemon=True).start()
        while data := daemon.recv(SIZE):
            self._peer.sendall(data)
