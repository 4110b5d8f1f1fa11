"""Commands of a soak's round: run, killed, and watched in /proc while they run.

After every command, ended or killed: no process of it, nothing of ours in TMPDIR or in /dev/shm.
"""
import collections
import os
import signal
import subprocess
import time

MILLRACE = os.environ.get("MILLRACE_BIN", "build/release/millrace")
LIMIT = 900                     # seconds: a command that takes longer hangs
# What mpirun has in TMPDIR, and leaves there when it is killed.
MPI_NAMES = ("ompi.", "openmpi-sessions", "pmix", "vader_segment.")
Look = collections.namedtuple("Look", "done resident peak descriptors threads")


class Broken(Exception):
    pass


def check(condition, words, *values):
    if not condition:
        raise Broken(words % values)


def children(pid):
    """All descendants of a process, itself first."""
    of = collections.defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name) as file:
                    of[int(file.read().rsplit(")", 1)[1].split()[1])].append(int(name))
            except (OSError, IndexError):
                pass
    found = [pid]
    for one in found:
        found += of[one]
    return found


def is_millrace(pid):
    try:
        return os.path.realpath("/proc/%d/exe" % pid) == os.path.realpath(MILLRACE)
    except OSError:
        return False


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def fields(path):
    with open(path) as file:
        return dict(line.split(":", 1) for line in file)


def look(pid):
    """What a process has written, and what it holds: bytes, KiB, KiB, counts; None when it has ended.

    What it has read does not measure its work: ranks read the program itself at the start, to compare it.
    """
    try:
        io, status = fields("/proc/%d/io" % pid), fields("/proc/%d/status" % pid)
        return Look(int(io["wchar"]), *(int(status[name].split()[0]) for name in ("VmRSS", "VmHWM")),
                    len(os.listdir("/proc/%d/fd" % pid)), int(status["Threads"]))
    except (OSError, KeyError):
        return None


def check_flat(looks, what, memory, descriptors, threads):
    """What is held in the second quarter of the work is held in the last, with so much room; False: too few looks."""
    work = looks[-1].done if looks else 0
    middle = [one for one in looks if work / 4 <= one.done < work / 2]
    end = [one for one in looks if 3 * work / 4 <= one.done < 15 * work / 16]
    if min(len(middle), len(end)) < 5:
        return False
    # Evaluations and checkpoints come and go, and take most of the time where a disk is slow; what leaks never falls again.
    for i, room in ((1, memory), (2, memory), (3, descriptors), (4, threads)):
        a, b = (min(one[i] for one in part) for part in (middle, end))
        check(b <= a + room, "%s: %s: %d in the midst of its work and %d at its end", what, Look._fields[i], a, b)
    return True


class Folder:
    """A round's folder, and commands run in it; all that they say goes to commands.log."""

    def __init__(self, path, chance):
        self.path, self.chance, self.kills = path, chance, 0
        os.makedirs(self.at("tmp"))
        self.env = dict(os.environ, TMPDIR=self.at("tmp"), OMPI_MCA_btl_vader_backing_directory=self.at("tmp"))
        self.shared = set(os.listdir("/dev/shm"))
        self.process = None

    def at(self, *names):
        return os.path.join(self.path, *names)

    def start(self, ranks, words, program=MILLRACE):
        command = [os.path.abspath(program)] + [str(w) for w in words]
        if ranks > 1:
            command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)] + command
        with open(self.at("commands.log"), "a") as log:
            log.write("$ %s\n" % " ".join(command))
        self.started = time.monotonic()
        self.out, self.err = open(self.at("out"), "wb+"), open(self.at("commands.log"), "ab")
        self.process = subprocess.Popen(command, cwd=self.path, env=self.env, stdin=subprocess.DEVNULL, stdout=self.out,
                                        stderr=self.err, start_new_session=True)
        return self.process

    def stop(self):
        """Whatever runs is killed: the soak ends in its midst."""
        if self.process and self.process.poll() is None:
            send(children(self.process.pid), signal.SIGKILL)
            self.process.wait()

    def end(self, process, pids=()):
        """Waits; what the command said, and its status."""
        command = " ".join(process.args)
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            send(children(process.pid), signal.SIGABRT)
            raise Broken("%s: hung: still running after %d seconds" % (command, LIMIT)) from None
        finally:
            self.err.close()
        until = time.monotonic() + LIMIT
        while any(is_millrace(pid) for pid in pids):
            check(time.monotonic() < until, "%s: processes are left: %s", command, list(pids))
            time.sleep(0.01)
        self.out.seek(0)
        text = self.out.read().decode()
        self.out.close()
        for name in os.listdir(self.at("tmp")):
            check(name.startswith(MPI_NAMES), "%s left %s in TMPDIR", command, name)
        # Other programs use /dev/shm too; ours would be named by us.
        for name in set(os.listdir("/dev/shm")) - self.shared:
            check("millrace" not in name, "%s left %s in /dev/shm", command, name)
        return process.returncode, text

    def part(self, process):
        """OpenMPI 4.1's mpirun may lock itself up when a rank dies while it joins: without one for 5 s it is ended."""
        alone = time.monotonic()
        while process.poll() is None and time.monotonic() < alone + 5:
            if any(is_millrace(pid) for pid in children(process.pid)):
                alone = time.monotonic()
                check(alone < self.started + LIMIT, "ranks outlive one that was killed: %s", process.args)
            time.sleep(0.02)
        if process.poll() is None:
            process.kill()

    def run(self, *words, ranks=1, program=MILLRACE):
        process = self.start(ranks, words, program)
        code, text = self.end(process)
        check(code == 0, "%s: exit code %d; see commands.log", " ".join(process.args), code)
        return text

    def run_killed(self, *words, ranks=1, seconds=1.0):
        """Kills the command within `seconds`: one rank, or all there is."""
        moment, one, which = (self.chance.random() for _ in range(3))
        process = self.start(ranks, words)
        time.sleep(moment * seconds)
        os.kill(process.pid, signal.SIGSTOP)            # no rank is started while they are counted
        pids = children(process.pid)
        running = [pid for pid in pids if is_millrace(pid)]
        one = running and ranks > 1 and one < 0.5
        send([running[int(which * len(running))]] if one else pids, signal.SIGKILL)
        send([process.pid], signal.SIGCONT)
        self.part(process)
        code, _ = self.end(process, pids)
        self.kills += code != 0

    def run_watched(self, *words, ranks=1):
        """Looks at the command (at one of its ranks), which must succeed, as often as may be until it ends."""
        process, looks, pid = self.start(ranks, words), [], None
        while process.poll() is None and time.monotonic() < self.started + LIMIT:
            pid = pid or next(filter(is_millrace, children(process.pid)), None)
            looks.append(look(pid) if pid else None)
            time.sleep(0.002)
        code, _ = self.end(process)
        check(code == 0, "%s: exit code %d; see commands.log", " ".join(process.args), code)
        return [one for one in looks if one]
