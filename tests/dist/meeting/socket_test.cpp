#include "dist/meeting/socket.h"

#include <catch.hpp>
#include <fstream>

using namespace dgc;

namespace {

const std::vector<std::string> kHere = {"127.0.0.1"};

// The ports that Linux gives to connecting ends. It goes from one to the next but one, and begins with those of the
// lowest one's parity.
struct PortRange {
  int first = 0, last = 0;
};
PortRange port_range() {
  PortRange range;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> range.first >> range.last;
  return range;
}

// A port of those at which nobody listens; 0: there is none.
int free_port_of(const PortRange& range) {
  for (int port = range.first; port <= range.last && range.first > 0; port += 2) {
    int taken = port;
    std::string problem;
    if (!listen_at(kHere, taken, problem).empty()) return port;
  }
  return 0;
}

}  // namespace

TEST_CASE("who calls where nobody listens does not reach himself", "[socket]") {
  const PortRange range = port_range();
  const int port = free_port_of(range);
  if (port == 0) {
    WARN("skipped: this system does not say which ports it gives to connections");
    return;
  }
  int reached = 0;
  for (int attempt = 0; attempt <= (range.last - range.first) / 2 + 1000; ++attempt) {
    Trouble trouble;
    if (connect_to(kHere, port, std::chrono::steady_clock::now() + std::chrono::seconds(1), trouble)) ++reached;
  }
  CHECK(reached == 0);
}
