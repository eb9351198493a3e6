#include "dist/meeting/socket.h"

#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

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
  if (asked == kNameOfTwo) {
    const int error = resolve("127.0.0.1", service, hints, found);
    return error != 0 ? error : resolve(second_address.c_str(), service, hints, &(*found)->ai_next);
  }
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
  const auto trouble_with = [](const std::string& host, std::chrono::milliseconds within) {
    Trouble trouble;
    const Deadline deadline = std::chrono::steady_clock::now() + within;
    CHECK(look_up({.host = host, .port = 1, .path = {}}, deadline, trouble).empty());
    return trouble;
  };
  name_servers_answers = 0;
  const Trouble failing = trouble_with(kNameThatFailsLater, std::chrono::seconds(20));
  CHECK_FALSE(failing.of_place);
  CHECK(failing.text == gai_strerror(EAI_AGAIN));
  name_server_hangs = true;
  const Trouble hanging = trouble_with(kNameThatHangs, std::chrono::milliseconds(300));
  name_server_hangs = false;
  CHECK_FALSE(hanging.of_place);
  CHECK(hanging.text == "the name server does not answer");
}

TEST_CASE("a port that another program holds at one of the addresses is not used at the others", "[socket]") {
  int port = 0;
  std::string problem;
  const std::vector<std::string> other = {"127.0.0.2"}, both = {"127.0.0.1", "127.0.0.2"};
  const std::vector<Socket> held = listen_at(other, port, problem);
  if (held.empty()) {
    WARN("skipped: this machine cannot listen at 127.0.0.2 (" << problem << ")");
    return;
  }
  CHECK(listen_at(both, port, problem).empty());
  CHECK(problem == "127.0.0.2: Address already in use");
  CHECK(listen_at(std::vector<std::string>(both.rbegin(), both.rend()), port, problem).empty());
}

TEST_CASE("an address that is silent leaves time for those behind it", "[socket]") {
  const Socket silent(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);  // 127.0.0.2
  socklen_t size = sizeof(address);
  if (bind(silent.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(silent.get(), 0) != 0) {
    WARN("skipped: this machine cannot listen at 127.0.0.2");
    return;
  }
  REQUIRE(getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  int port = ntohs(address.sin_port);
  std::string problem;
  const std::vector<Socket> listeners = listen_at(kHere, port, problem);
  REQUIRE_FALSE(listeners.empty());
  Trouble trouble;
  const auto soon = [] { return std::chrono::steady_clock::now() + std::chrono::milliseconds(100); };
  const std::vector<std::string> there = {"127.0.0.2"}, both = {"127.0.0.2", "127.0.0.1"};
  std::vector<Socket> queue;  // whoever comes behind those that it has room for hears nothing
  do queue.push_back(connect_to(there, port, soon(), trouble));
  while (queue.back() && queue.size() < 100);
  REQUIRE_FALSE(queue.back());
  int looks = 0;  // ten in a second at most, and a half of 4 s is the share of each address
  CHECK(
      connect_to(both, port, {std::chrono::steady_clock::now() + std::chrono::seconds(4), [&] { ++looks; }}, trouble));
  CHECK(looks < 30);
}
