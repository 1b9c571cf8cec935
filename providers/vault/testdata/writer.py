"""A writer of a vault that knows nothing of wsmount but the protocol.

    writer.py VAULT LOCKS COUNT NAME...

Adds one to a counter, COUNT times, each time in the next of the files. The lock is taken
around look and change, as agentm's programs do it.
"""

import contextlib
import hashlib
import itertools
import os
import sys
import threading
import time
import uuid

STALE = TIMEOUT = 10.0


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Timeout(Exception):
    pass


@contextlib.contextmanager
def mutex(vault, locks):
    place = os.path.join(locks, digest(os.path.realpath(vault).encode()), "lock")
    os.makedirs(os.path.dirname(place), exist_ok=True)
    end, pause = time.monotonic() + TIMEOUT, 0.01
    while True:
        try:
            os.mkdir(place)
            break
        except FileExistsError:
            pass
        try:
            age = time.time() - os.stat(place).st_mtime
        except FileNotFoundError:
            continue
        if age > STALE:
            with contextlib.suppress(OSError):
                os.rmdir(place)
            continue
        if time.monotonic() >= end:
            raise Timeout(place)
        time.sleep(pause)
        pause = min(2 * pause, 0.2)
    done = threading.Event()

    def show():
        while not done.wait(STALE / 2):
            with contextlib.suppress(OSError):
                os.utime(place)

    shower = threading.Thread(target=show, daemon=True)
    shower.start()
    try:
        yield
    finally:
        done.set()
        shower.join()
        with contextlib.suppress(OSError):
            os.rmdir(place)


def read(name):
    with open(name, "rb") as f:
        return f.read()


def replace(name, old, new):
    temp = "%s.%d.%s.tmp" % (name, os.getpid(), uuid.uuid4().hex)
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(new)
            f.flush()
            os.fsync(f.fileno())
        if digest(read(name)) != digest(old):
            raise SystemExit("%s changed while the lock was held" % name)
        os.rename(temp, name)
    except BaseException:
        os.unlink(temp)
        raise


def add(name):
    old = read(name)
    number, check = old.decode().split()
    if check != digest(number.encode()):
        raise SystemExit("%s is torn: %r" % (name, old))
    number = str(int(number) + 1)
    replace(name, old, ("%s %s\n" % (number, digest(number.encode()))).encode())


def main(vault, locks, count, *names):
    for _, name in zip(range(int(count)), itertools.cycle(names)):
        while True:
            try:
                with mutex(vault, locks):
                    add(os.path.join(vault, name))
                break
            except Timeout:
                pass


main(*sys.argv[1:])
