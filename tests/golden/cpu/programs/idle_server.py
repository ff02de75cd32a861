"""A server that nobody asks: it waits, as it should."""

import socketserver
import threading
import time


class Echo(socketserver.BaseRequestHandler):
    """Sends back what it gets."""

    def handle(self) -> None:
        """Answer once."""
        self.request.sendall(self.request.recv(1024))


with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.5}, daemon=True).start()
    stop = threading.Event()
    threading.Timer(2.0, stop.set).start()
    stop.wait()
    server.shutdown()
print(time.strftime("%H"))
