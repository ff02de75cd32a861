"""Asks a service one question at a time: the thread sits in `recv` while the answer travels.

    warplens profile -o socket -t nvtx,osrt --sample=process-tree --python-sampling=true python examples/cpu_mistakes/blocked_socket.py
    warplens stats -r osrt_sum socket
    warplens flame --wall socket
    warplens timeline socket

`--fix` sends all questions before it waits for the first answer.
"""

from __future__ import annotations

import argparse
import socket
import threading
import time

import warplens.nvtx as nvtx

QUESTION = 16  # bytes
_TRAVEL = 0.03  # s


def service(connection: socket.socket) -> None:
    """Answer each question some time after it came, however many are under way."""
    due: list[tuple[float, bytes]] = []
    connection.setblocking(False)
    while True:
        try:
            data = connection.recv(1 << 16)
            if not data:
                return
            due.append((time.monotonic() + _TRAVEL, data))
        except BlockingIOError:
            pass
        while due and due[0][0] <= time.monotonic():
            connection.send(due.pop(0)[1])
        time.sleep(0.001)


def ask(connection: socket.socket, questions: int, ahead: bool) -> int:
    """Ask and wait for each answer; `ahead`: ask everything first."""
    answers = 0
    if ahead:
        connection.sendall(bytes(QUESTION) * questions)
    for _ in range(questions):
        with nvtx.annotate("ask"):
            if not ahead:
                connection.sendall(bytes(QUESTION))
            received = 0
            while received < QUESTION:
                received += len(connection.recv(QUESTION - received))
            answers += 1
    return answers


def main() -> None:
    """Start the service and a client."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fix", action="store_true", help="without the mistake")
    parser.add_argument("--items", type=int, default=20, help="questions (default: 20)")
    options = parser.parse_args()
    near, far = socket.socketpair()
    answers: list[int] = []
    client = threading.Thread(
        target=lambda: answers.append(ask(near, options.items, options.fix)), name="client"
    )
    server = threading.Thread(target=service, args=(far,), name="service")
    server.start()
    client.start()
    client.join()
    near.close()
    server.join()
    print(f"{answers[0]} answers")


if __name__ == "__main__":
    main()
