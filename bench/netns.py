"""Machines that one machine plays: a network namespace and a host name for each rank, all on a bridge, with links that
can be shaped in both directions, or cut.

`ip netns list` outside shows none of this: names, files and namespaces lie in a mount namespace of the calling process,
and go with the last process in it, also after a SIGKILL.
"""

import ctypes
import json
import os
import pathlib
import shlex
import signal
import subprocess

import processes
from processes import LIBC, ends_with_this_process, send
from program import NAME, Failure, at_least

# Where ip and tc are, also for root without a login.
os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
CLONE_NEWNS = 0x20000
# In memory, and this process's own once it is hidden. Processes are known by this word, so each program has another.
FOLDER = pathlib.Path(f"/run/dgc_machines_{os.getpid()}")
ranks_number = at_least(2, 64)  # the type of an option
QUEUE_BYTES = 1 << 25  # of a link: as long as all that TCP sends ahead, so that nothing is dropped where ranks meet

# Run in two namespaces: seconds per message of one byte, and bits per second of a stretch that starts with full
# buffers.
PROBE = """
import json, socket, sys, time
role, host = sys.argv[1:]
if role == "listen":
    server = socket.create_server((host, 29900))
    print("ready", flush=True)
    link, _ = server.accept()
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(200):
        link.send(link.recv(1))
    arrived = []
    while True:
        got = len(link.recv(1 << 16))
        if got == 0:
            break
        arrived.append((time.monotonic(), got))
    begin = arrived[0][0] + 0.25
    late = [(t, n) for t, n in arrived if t > begin]
    print(json.dumps(8 * sum(n for _, n in late[1:]) / (late[-1][0] - late[0][0])))
else:
    link = socket.create_connection((host, 29900))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = []
    for _ in range(200):
        begin = time.monotonic()
        link.send(b"x")
        link.recv(1)
        times.append(time.monotonic() - begin)
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        link.sendall(b"x" * 65536)
    print(json.dumps(sorted(times)[100] / 2))
"""


def lacking(*programs):
    """What keeps this machine from playing several with these programs, and what would help; or None."""
    if os.geteuid() != 0:
        return "making network namespaces needs root: run it with sudo"
    found = processes.lacking("ip", "tc", "unshare", "mount", *programs)
    if found is None and processes.run(["unshare", "-n", "-m", "-u", "true"]).returncode != 0:
        return "this machine allows no networks of one's own"
    return found


def require_tools():
    """Before anything is made."""
    found = lacking("mpirun")
    if found is not None:
        raise Failure(found)


def hide(used=(), places=("/run",)):
    """From here on what this process and its children mount, nobody else sees. Each place becomes an empty disk in
    memory, which temporary files are on; so no file that is used may be there."""
    for path in used:
        for place in places:
            if path is not None and path.resolve().is_relative_to(place):
                raise Failure(f"{path}: {place} is hidden here; take another folder")
    if LIBC.unshare(CLONE_NEWNS) != 0:
        raise Failure(f"this machine allows no mount namespace of its own: {os.strerror(ctypes.get_errno())}")
    call("mount --make-rprivate /")
    for place in places:
        call(f"mount -t tmpfs -o mode=755 {NAME} {place}")
    FOLDER.mkdir()
    os.environ["TMPDIR"] = str(FOLDER)


def call(command):
    done = processes.run(shlex.split(command))
    if done.returncode != 0:
        why = (done.stderr or done.stdout).strip()
        if " tbf " in command and "unknown" in why:
            why += " (this kernel has no token bucket: modprobe sch_tbf)"
        raise Failure(f"{command}: {why}")


def burst_bytes(bits_per_second):
    """What a link may send at once after a pause: little, or small messages would travel at no cost. A faster link must
    let the kernel's packets of 64 KiB pass whole: cutting them up is more work than two cores keep up with."""
    return max(4096, int(bits_per_second / 8 * 500e-6)) if bits_per_second <= 200_000_000 else 70_000


class Links:
    """`with Links(ranks) as links`: machines rank0 ... rankN-1 with an address each, unshaped at first. variables(rank)
    is what all programs of a rank's machine have in their environment besides, without spaces."""

    def __init__(self, ranks, variables=lambda rank: {}):
        self.ranks = ranks
        self.variables = variables
        self.agent = FOLDER / "agent"

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for space in [*map(self.space, range(self.ranks)), "hub"]:
            for pid in processes.run(["ip", "netns", "pids", space]).stdout.split():
                send(int(pid), signal.SIGKILL)
            processes.run(["ip", "netns", "delete", space])

    @staticmethod
    def space(rank):
        return f"rank{rank}"

    @staticmethod
    def address(rank):
        return f"10.77.0.{rank + 1}"

    def _make(self):
        call("ip netns add hub")
        call("ip -n hub link add bridge type bridge")
        call("ip -n hub link set bridge up")
        for rank in range(self.ranks):
            space = self.space(rank)
            call(f"ip netns add {space}")
            call(f"ip -n {space} link set lo up")
            call(f"ip link add link0 netns {space} type veth peer name port{rank} netns hub")
            call(f"ip -n hub link set port{rank} master bridge up")
            call(f"ip -n {space} address add {self.address(rank)}/24 dev link0")
            call(f"ip -n {space} link set link0 up")
        # What Open MPI calls in place of ssh: `agent ADDRESS COMMAND...`.
        cases = "".join(f'{self.address(rank)}) exec {shlex.join(self.inside(rank, ["sh", "-c"]))} "$*" ;;\n'
                        for rank in range(self.ranks))
        self.agent.write_text(f"#!/bin/sh\nmachine=$1\nshift\ncase $machine in\n{cases}esac\n")
        self.agent.chmod(0o755)

    def shape(self, bits_per_second):
        """Holds every link to this rate in each direction; None: to none."""
        for rank in range(self.ranks):
            self.shape_one(rank, bits_per_second)

    def shape_one(self, rank, bits_per_second):
        for space, device in [(self.space(rank), "link0"), ("hub", f"port{rank}")]:
            processes.run(["tc", "-n", space, "qdisc", "delete", "dev", device, "root"])
            if bits_per_second is not None:
                call(f"tc -n {space} qdisc add dev {device} root tbf rate {bits_per_second}bit "
                     f"burst {burst_bytes(bits_per_second)} limit {QUEUE_BYTES}")

    def cut(self, rank):
        """Pulls the plug of a machine's link."""
        call(f"ip -n hub link set port{rank} down")

    def join(self, rank):
        call(f"ip -n hub link set port{rank} up")

    def inside(self, rank, command):
        # A host name of its own makes a rank's namespace a machine of its own to Open MPI, which else would carry its
        # bytes through shared memory.
        variables = [f"{name}={value}" for name, value in self.variables(rank).items()]
        return ["ip", "netns", "exec", self.space(rank), "unshare", "--uts", "env", *variables, "sh", "-c",
                'hostname "$0" && exec "$@"', self.space(rank), *map(str, command)]

    def launcher(self, network="10.77.0.0/24"):
        """Words of an mpirun on the first machine that starts one rank on each; they talk over this network, or over
        the interface of this name."""
        settings = {"plm_rsh_agent": self.agent, "pml": "ob1", "btl": "tcp,self", "btl_tcp_if_include": network,
                    "oob_tcp_if_include": network}
        mca = [word for key, value in settings.items() for word in ("--mca", key, value)]
        hosts = ",".join(map(self.address, range(self.ranks)))
        return ["mpirun", "--allow-run-as-root", "--bind-to", "none", "--host", hosts, "-n", self.ranks, *mca]

    def mpirun(self, command, options=()):
        """One rank of the command on each machine. options: further ones of mpirun."""
        return self.inside(0, [*self.launcher(), *options, *command])

    def probe(self):
        """What the link between ranks 0 and 1 really carries: {"goodput_bps", "latency_s"}."""
        def start(rank, role):
            return subprocess.Popen(self.inside(rank, ["python3", "-c", PROBE, role, self.address(1)]),
                                    stdout=subprocess.PIPE, text=True, preexec_fn=ends_with_this_process)
        with start(1, "listen") as listener:
            listener.stdout.readline()
            with start(0, "send") as sender:
                latency = json.loads(sender.stdout.read())
            return {"goodput_bps": json.loads(listener.stdout.read()), "latency_s": latency}
