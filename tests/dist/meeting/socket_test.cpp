#include "dist/meeting/socket.h"

#include <catch.hpp>

using namespace dgc;

namespace {

const std::vector<std::string> kHere = {"127.0.0.1"};

// A port at which nobody listens, and that Linux may give to a connecting end: of those it prefers the even ones.
int even_port() {
  while (true) {
    int port = 0;
    std::string problem;
    REQUIRE_FALSE(listen_at(kHere, port, problem).empty());
    ++port;
    if (port % 2 == 0 && !listen_at(kHere, port, problem).empty()) return port;
  }
}

}  // namespace

TEST_CASE("who calls where nobody listens does not reach himself", "[socket]") {
  const int port = even_port();
  constexpr int kAttempts = 16384;  // Linux goes from port to port, and has 14,116 that are even
  int reached = 0;
  for (int i = 0; i < kAttempts; ++i) {
    Trouble trouble;
    if (connect_to(kHere, port, std::chrono::steady_clock::now() + std::chrono::seconds(1), trouble)) ++reached;
  }
  CHECK(reached == 0);
}
