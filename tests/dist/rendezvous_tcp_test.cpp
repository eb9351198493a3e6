#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <span>
#include <string_view>
#include <thread>

#include "dist/socket.h"
#include "tests/dist/meeting.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;

TEST_CASE("a place by name, in IPv6 and open to other machines", "[rendezvous]") {
  CHECK(outcomes(ranks_at(tcp("localhost"), 2, kLong)) == kFine2);
  std::array<char, 256> name{};
  REQUIRE(gethostname(name.data(), name.size() - 1) == 0);
  CHECK(outcomes(ranks_at(tcp(name.data()), 2, kLong)) == kFine2);
  const Socket ipv6(socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  if (!ipv6 || bind(ipv6.fd(), reinterpret_cast<sockaddr*>(&loopback), sizeof(loopback)) != 0) {
    WARN("skipped: this machine has no IPv6 loopback address");
    return;
  }
  CHECK(outcomes(ranks_at(tcp("::1"), 2, kLong)) == kFine2);
}

TEST_CASE("strangers are not taken for ranks", "[rendezvous]") {
  const MeetingPoint point = tcp();
  auto ranks = ranks_at(point, 2, kLong);
  ranks[1].delay = milliseconds(200);
  std::string answer = "none";
  Socket silent, half;  // stay connected all the while
  std::jthread strangers([&] {
    std::string problem;
    const Deadline deadline = std::chrono::steady_clock::now() + kLong;
    const auto knock = [&](std::string_view says) {
      Socket socket;
      while (!socket && std::chrono::steady_clock::now() < deadline) {
        socket = connect_to(point, deadline, problem);
        if (!socket) std::this_thread::sleep_for(milliseconds(5));
      }
      send_all(socket, std::as_bytes(std::span(says)), deadline);
      return socket;
    };
    silent = knock("");
    half = knock("DGCMEET1 and then nothing");
    const Socket browser = knock("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::array<std::byte, 1> byte{};
    answer = receive_all(browser, byte, deadline) ? "an answer" : "hung up on";
  });
  const auto found = outcomes(ranks);
  strangers.join();
  CHECK(found == kFine2);
  CHECK(answer == "hung up on");
}

TEST_CASE("a foreign service at the meeting point is recognised", "[rendezvous]") {
  const MeetingPoint point = tcp();
  const auto listeners = listen_at(point);
  CHECK_THAT(outcome(launch_of(0, 2, point), within(kShort)),
             Contains("rank 0 cannot listen at " + point.url()) && Contains("choose another port"));
  std::jthread service([&] {
    std::this_thread::sleep_for(milliseconds(50));
    for (int i = 0; i < 100; ++i) {
      const Socket guest = accept_from(listeners[0]);
      const std::string_view says = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
      if (guest) send_all(guest, std::as_bytes(std::span(says)), std::chrono::steady_clock::now());
      if (guest) std::this_thread::sleep_for(milliseconds(20));
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  CHECK_THAT(outcome(launch_of(1, 2, point), within(milliseconds(400))),
             Contains("did not find rank 0") && Contains("another program answers there"));
}

TEST_CASE("an unknown host is named", "[rendezvous]") {
  CHECK_THAT(outcome(launch_of(1, 2, tcp("no-such-host.invalid")), within(milliseconds(100))),
             Contains("did not find rank 0 at tcp://no-such-host.invalid:"));
}
