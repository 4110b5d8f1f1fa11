"""ring_copy.py NUMBER HOSTS BYTES ROUNDS - what TCP alone takes to carry an exchange's bytes: host NUMBER (from 1) of HOSTS
sends BYTES to the next one, 10.77.0.N, while it receives as many from the one before.  Prints the median in milliseconds.

Invariant: all hosts start a round together, as each waits for the first byte of the one before it."""
import os
import socket
import statistics
import sys
import time

PORT = 29600


def receive(source, count):
    buffer = bytearray(1 << 20)
    while count:
        got = source.recv_into(buffer, min(count, len(buffer)))
        if not got:
            sys.exit("a host is gone")
        count -= got


def send(target, count):
    buffer = memoryview(bytes(1 << 20))
    while count:
        count -= target.send(buffer[:count])


def connect(address):
    for _ in range(600):
        try:
            return socket.create_connection(address)
        except OSError:
            time.sleep(0.05)
    sys.exit(f"{address[0]} does not answer")


def main():
    number, hosts, count, rounds = (int(word) for word in sys.argv[1:])
    with socket.create_server(("", PORT)) as server:
        target = connect((f"10.77.0.{number % hosts + 1}", PORT))
        source, _ = server.accept()
    times = []
    for _ in range(rounds + 1):
        # The token goes round twice, so that none starts before all have come.
        for _ in range(2):
            if number == 1:
                target.sendall(b"!")
            receive(source, 1)
            if number > 1:
                target.sendall(b"!")
        since = time.monotonic()
        sender = os.fork()
        if sender == 0:
            send(target, count)
            os._exit(0)
        receive(source, count)
        os.waitpid(sender, 0)
        times.append(time.monotonic() - since)
    if number == 1:
        print(f"{statistics.median(times[1:]) * 1e3:.1f}")


main()
