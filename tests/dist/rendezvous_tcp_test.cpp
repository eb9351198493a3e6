#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch.hpp>
#include <chrono>
#include <span>
#include <string_view>
#include <thread>

#include "dist/socket.h"
#include "tests/dist/meeting.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;

TEST_CASE("a place by the name localhost", "[rendezvous]") {
  if (have_name("localhost")) CHECK(outcomes(ranks_at(tcp("localhost"), 2, kLong)) == kFine2);
}

TEST_CASE("a place by the machine's name, open to other machines", "[rendezvous]") {
  std::array<char, 256> name{};
  REQUIRE(gethostname(name.data(), name.size() - 1) == 0);
  if (have_name(name.data())) CHECK(outcomes(ranks_at(tcp(name.data()), 2, kLong)) == kFine2);
}

TEST_CASE("a place in IPv6", "[rendezvous]") {
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
    Trouble trouble;
    const Deadline deadline = std::chrono::steady_clock::now() + kLong;
    const auto knock = [&](std::string_view says) {
      Socket socket;
      while (!socket && std::chrono::steady_clock::now() < deadline) {
        socket = connect_to(point, deadline, trouble);
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

TEST_CASE("an unknown host, or an address that no rank can have, is an error long before the timeout", "[rendezvous]") {
  const std::string unknown = "no-such-host.invalid", no_address = "10.0.0.999", of_no_network = "fe80::1";
  MeetingPoint point = tcp(GENERATE_COPY(unknown, no_address, of_no_network));
  point.variable = "MASTER_ADDR";
  CHECK_THAT(outcome(launch_of(1, 2, point), within(std::chrono::hours(1))),
             Contains("rank 1 of 2 cannot meet the others at " + point.url() + ", which MASTER_ADDR names: ") &&
                 Contains("correct it on every rank"));
}

TEST_CASE("rank 0 cannot be found by a name that it does not know itself", "[rendezvous]") {
  CHECK_THAT(outcome(launch_of(0, 2, tcp("no-such-host.invalid")), within(std::chrono::hours(1))),
             Contains("rank 0 of 2 cannot meet the others at tcp://no-such-host.invalid:"));
}
