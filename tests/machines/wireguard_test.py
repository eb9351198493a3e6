#!/usr/bin/python3
"""dgc under mpirun on two machines that this machine plays, over WireGuard as docs/launch.md sets it up, so that nothing
else crosses the network between them. Needs root, iproute2, Open MPI, wireguard-tools, and WireGuard in the kernel or
wireguard-go; without them it says "skipped" and why.

    tests/machines/wireguard_test.py --dgc build/release/dgc
"""

import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
import netns  # noqa: E402
import processes  # noqa: E402
import run_files  # noqa: E402

TRAIN = ["train", ROOT / "bench" / "tiny.json", "--set", "device=cpu"]
MACHINES = 2
PORT = 51820
TUNNEL = "10.79.0"
# Prints what crosses the hub to a single machine, each kind once: ethertype, IP protocol, and of UDP the port that it
# goes to. What goes to all machines is how they announce themselves (ARP, IGMP, IPv6).
WATCH = """
import socket, sys
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
print("ready", flush=True)
seen = set()
while True:
    packet = link.recv(65536)
    if packet[0] & 1:
        continue
    kind = [packet[12:14].hex()]
    if kind == ["0800"]:
        at = 14 + packet[14] % 16 * 4
        kind += [str(packet[23]), str(int.from_bytes(packet[at + 2:at + 4], "big")) if packet[23] == 17 else ""]
    if tuple(kind) not in seen:
        seen.add(tuple(kind))
        print(*kind, flush=True)
"""


def wg(*words, **options):
    return subprocess.run(["wg", *words], check=True, capture_output=True, text=True, **options).stdout.strip()


class Wireguard(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="dgc_wireguard_"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.links = self.enterContext(netns.Links(MACHINES))

    def raise_tunnels(self):
        keys = [wg("genkey") for _ in range(MACHINES)]
        for rank in range(MACHINES):
            other = 1 - rank
            config = netns.FOLDER / f"machine{rank}" / "wg0.conf"
            config.parent.mkdir()
            config.touch(mode=0o600)
            config.write_text(f"[Interface]\nAddress = {TUNNEL}.{rank + 1}/24\nPrivateKey = {keys[rank]}\n"
                              f"ListenPort = {PORT}\n\n[Peer]\nPublicKey = {wg('pubkey', input=keys[other])}\n"
                              f"AllowedIPs = {TUNNEL}.{other + 1}/32\nEndpoint = {self.links.address(other)}:{PORT}\n")
            # wireguard-go leaves a socket named after the interface in /run, which these two machines share.
            up = f"mkdir -p /run/wireguard && mount -t tmpfs none /run/wireguard && wg-quick up {shlex.quote(str(config))}"
            done = subprocess.run(self.links.inside(rank, ["unshare", "-m", "sh", "-c", up]), text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_it_ends_in_the_bits_of_one_process_and_nothing_else_crosses_the_network(self):
        alone, run = self.folder / "alone", self.folder / "together"
        subprocess.run([DGC, *TRAIN, "--set", f"workers_per_rank={MACHINES}", "--out", alone], check=True,
                       capture_output=True)
        self.raise_tunnels()
        watch = subprocess.Popen(["ip", "netns", "exec", "hub", "python3", "-c", WATCH], stdout=subprocess.PIPE, text=True)
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        self.assertEqual(watch.stdout.readline(), "ready\n")
        train = [DGC, *TRAIN, "--set", "exchange.interface=wg0", "--out", run]
        done = processes.run(self.links.inside(0, [*self.links.launcher("wg0"), *train]), 120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(run_files.final_hash(run), run_files.final_hash(alone))
        watch.kill()
        seen = set(watch.stdout.read().splitlines())
        self.assertEqual(seen - {"0806"}, {f"0800 17 {PORT}"})  # 0806: ARP's answers


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dgc", required=True, help="the program")
    options, rest = parser.parse_known_args()
    DGC = os.path.abspath(options.dgc)
    lacking = netns.lacking("mpirun", "wg", "wg-quick", "wireguard-go")
    if lacking is not None:
        print(f"skipped: {lacking}")
        sys.exit(0)
    netns.hide()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
