#include "dist/meeting/socket.h"

#include <dlfcn.h>
#include <netdb.h>

#include <catch.hpp>
#include <fstream>
#include <string_view>
#include <thread>

#include "tests/dist/meeting/name_server.h"

using namespace dgc;
using namespace dgc::test;

// In place of the C library's.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
  static const auto resolve = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool numeric = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
  const std::string_view asked = name == nullptr || numeric ? "" : name;
  if (asked == kNameThatFailsLater)
    return --name_servers_answers < 0 ? EAI_AGAIN : resolve("127.0.0.1", service, hints, found);
  if (asked == kNoAddress) return EAI_NONAME;
  while (asked == kNameThatHangs && name_server_hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return resolve(name, service, hints, found);
}

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

TEST_CASE("a name that is unknown is told from a name server that fails or does not answer", "[socket]") {
  const auto trouble_with = [](const std::string& host) {
    Trouble trouble;
    const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    CHECK(look_up({.host = host, .port = 1, .path = {}}, deadline, trouble).empty());
    return trouble;
  };
  name_servers_answers = 0;
  const Trouble failing = trouble_with(kNameThatFailsLater);
  CHECK_FALSE(failing.of_place);
  CHECK(failing.text == gai_strerror(EAI_AGAIN));
  name_server_hangs = true;
  const Trouble hanging = trouble_with(kNameThatHangs);
  name_server_hangs = false;
  CHECK_FALSE(hanging.of_place);
  CHECK(hanging.text == "the name server does not answer");
}
