#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch.hpp>
#include <chrono>
#include <span>
#include <string_view>
#include <thread>

#include "dist/meeting/handshake.h"
#include "dist/meeting/interfaces.h"
#include "tensor/machine_name.h"
#include "tests/dist/meeting/meeting.h"
#include "tests/dist/meeting/name_server.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;

TEST_CASE("a place by the name localhost", "[rendezvous]") {
  if (have_name("localhost")) CHECK(outcomes(ranks_at(tcp("localhost"), 2, kLong)) == kFine2);
}

TEST_CASE("with a secret, a place by the machine's name, open to other machines", "[rendezvous]") {
  if (!have_name(machine_name())) return;
  auto ranks = ranks_at(tcp(machine_name()), 2, kLong);
  for (Rank& rank : ranks) rank.launch.secret = Secret({std::byte{7}});
  CHECK(outcomes(ranks) == kFine2);
}

TEST_CASE("without a secret a place that other machines can reach is refused at once, by every rank", "[rendezvous]") {
  std::vector<std::string> places = {"192.0.2.9"};  // an address for documentation, and those of this machine
  for (const OwnAddress& own : own_addresses()) {
    if (!is_loopback(own.address)) places.push_back(own.address);
  }
  for (const std::string& place : places) {
    MeetingPoint point = tcp(place);
    point.variable = "MASTER_ADDR";
    for (const int rank : {0, 1}) {
      CHECK_THAT(outcome(launch_of(rank, 2, point), within(std::chrono::hours(1))),
                 Contains(fmt::format("rank {} of 2 does not meet the others at {} ({}, which MASTER_ADDR names)", rank,
                                      place, point.url())) &&
                     Contains("set DGC_SECRET_FILE=FILE for every rank"));
    }
  }
}

namespace {

// An address of this machine at which others reach it; empty, which is said: it has none.
std::string address_for_others() {
  for (const OwnAddress& own : own_addresses()) {
    if (!is_loopback(own.address)) return own.address;
  }
  WARN("skipped: this machine has no address but the loopback's");
  return "";
}

}  // namespace

TEST_CASE("without a secret exchange.interface opens no door to other machines", "[rendezvous]") {
  RendezvousOptions options = within(kShort);
  options.interface = address_for_others();
  if (options.interface.empty()) return;
  CHECK_THAT(outcome(launch_of(0, 2, tcp()), options),
             Contains("rank 0 of 2 does not meet the others at " + options.interface) &&
                 Contains("without a secret any of them could join"));
}

TEST_CASE("without a secret the loopback alone is used of a name that has other addresses too", "[rendezvous]") {
  second_address = address_for_others();
  if (second_address.empty()) return;
  const auto ranks = ranks_at(tcp(kNameOfTwo), 2, kLong);
  auto rank0 = come(ranks[0]);
  const Deadline deadline = std::chrono::steady_clock::now() + kLong;
  const auto connects = [&](const std::string& address) {
    Trouble trouble;
    return static_cast<bool>(connect_to(std::span(&address, 1), ranks[0].launch.meeting.port, deadline, trouble));
  };
  while (!connects("127.0.0.1") && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  const bool open_to_others = connects(second_address);
  CHECK(outcome(ranks[1].launch, ranks[1].options).empty());
  CHECK(rank0.get().empty());
  CHECK_FALSE(open_to_others);
}

TEST_CASE("with a secret, a place that is this machine's own address", "[rendezvous]") {
  const std::string own = address_for_others();
  if (own.empty()) return;
  auto ranks = ranks_at(tcp(own), 2, kLong);
  for (Rank& rank : ranks) rank.launch.secret = Secret({std::byte{7}});
  CHECK(outcomes(ranks) == kFine2);
}

TEST_CASE("a place in IPv6", "[rendezvous]") {
  const Socket ipv6(socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  if (!ipv6 || bind(ipv6.get(), reinterpret_cast<sockaddr*>(&loopback), sizeof(loopback)) != 0) {
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
        socket = connect_to(kLoopback, point.port, deadline, trouble);
        if (!socket) std::this_thread::sleep_for(milliseconds(5));
      }
      send_all(socket, std::as_bytes(std::span(says)), deadline);
      return socket;
    };
    silent = knock("");
    half = knock("DGCELLO1");
    const Socket browser = knock("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    Greeting greeting;
    receive_all(browser, std::as_writable_bytes(std::span(&greeting, 1)), deadline);
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
  int port = point.port;
  std::string problem;
  const auto listeners = listen_at(kLoopback, port, problem);
  CHECK_THAT(outcome(launch_of(0, 2, point), within(kShort)),
             Contains("rank 0 cannot listen at " + point.url()) && Contains("choose another port"));
  std::jthread service([&] {
    std::this_thread::sleep_for(milliseconds(50));
    std::string peer;
    for (int i = 0; i < 100; ++i) {
      const Socket guest = accept_from(listeners[0], peer);
      const std::string_view says = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
      if (guest) send_all(guest, std::as_bytes(std::span(says)), std::chrono::steady_clock::now());
      if (guest) std::this_thread::sleep_for(milliseconds(20));
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  CHECK_THAT(outcome(launch_of(1, 2, point), within(kMedium)),
             Contains("did not find rank 0") && Contains("it is another program that answers there"));
}

TEST_CASE("an unknown host, or an address that no rank can have, is an error long before the timeout", "[rendezvous]") {
  const std::string unknown = "no-such-host..invalid", no_address = kNoAddress, of_no_network = "fe80::1";
  MeetingPoint point = tcp(GENERATE_COPY(unknown, no_address, of_no_network));
  point.variable = "MASTER_ADDR";
  Launch launch = launch_of(1, 2, point);
  launch.secret = Secret({std::byte{7}});
  CHECK_THAT(outcome(launch, within(std::chrono::hours(1))),
             Contains("rank 1 of 2 cannot meet the others at " + point.url() + ", which MASTER_ADDR names: ") &&
                 Contains("correct it on every rank"));
}

TEST_CASE("an address stays known while the name server fails", "[rendezvous]") {
  auto ranks = ranks_at(tcp(), 2, kLong);
  ranks[1].launch.meeting.host = kNameThatFailsLater;
  name_servers_answers = 1;
  auto rank1 = come(ranks[1]);
  const Deadline deadline = std::chrono::steady_clock::now() + kLong;
  while (name_servers_answers >= 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  CHECK(outcome(ranks[0].launch, ranks[0].options).empty());
  CHECK(rank1.get().empty());
}

TEST_CASE("rank 0 cannot be found by a name that it does not know itself", "[rendezvous]") {
  CHECK_THAT(outcome(launch_of(0, 2, tcp("no-such-host..invalid")), within(std::chrono::hours(1))),
             Contains("rank 0 of 2 cannot meet the others at tcp://no-such-host..invalid:"));
}

TEST_CASE("a rank with another secret finds out soon, and no other rank is harmed", "[rendezvous]") {
  const MeetingPoint point = tcp();
  auto ranks = ranks_at(point, 2, kLong);
  for (Rank& rank : ranks) rank.launch.secret = Secret({std::byte{7}});
  auto rank0 = come(ranks[0]);
  Launch stranger = ranks[1].launch;
  stranger.secret = Secret({std::byte{8}});
  const std::string said = outcome(stranger, within(std::chrono::hours(1)));
  CHECK(outcome(ranks[1].launch, ranks[1].options).empty());
  CHECK(rank0.get().empty());
  CHECK_THAT(said, Contains("rank 1 of 2 cannot meet the others at " + point.url()) &&
                       Contains("it hangs up, as it does on a rank that has another secret (DGC_SECRET_FILE) or none"));
}

TEST_CASE("a second process with a rank's number is turned away", "[rendezvous]") {
  const auto ranks = ranks_at(tcp(), 3, kLong);
  auto rank0 = come(ranks[0]);
  CHECK(outcome(ranks[1].launch, ranks[1].options).empty());
  CHECK_THAT(outcome(ranks[1].launch, ranks[1].options), Contains("another process came with the same rank"));
  CHECK(outcome(ranks[2].launch, ranks[2].options).empty());
  CHECK(rank0.get().empty());
}

TEST_CASE("rank 0 says who was turned away while it waits, and at the end", "[rendezvous]") {
  const MeetingPoint point = tcp();
  std::string said;
  {
    RendezvousOptions options = within(kLong);
    std::atomic<bool> seen = false;
    options.while_waiting = [&](const std::string& waiting) {
      if (waiting.find("stranger") == std::string::npos) return;
      said = waiting;
      seen = true;
    };
    const std::jthread rank0([&] { outcome(launch_of(0, 2, point), options); });
    const Deadline deadline = std::chrono::steady_clock::now() + kLong;
    Trouble trouble;
    while (!seen && std::chrono::steady_clock::now() < deadline) {
      const Socket socket = connect_to(kLoopback, point.port, deadline, trouble);
      if (socket) send_all(socket, std::as_bytes(std::span("GET / HTTP/1.1", 14)), deadline);
      std::this_thread::sleep_for(milliseconds(5));
    }
    CHECK(outcome(launch_of(1, 2, point), within(kLong)).empty());
  }
  CHECK_THAT(said, Contains("rank 1 did not come; ") &&
                       Contains("turned away, the last one, from 127.0.0.1, because it is another program"));
}

TEST_CASE("exchange.interface bounds where rank 0 listens", "[rendezvous]") {
  const std::vector<OwnAddress> own = {{"lo", "127.0.0.1"}, {"lo", "::1"}, {"eth0", "10.1.2.3"}, {"eth0", "fd00::3"}};
  CHECK(addresses_of_interface("eth0", own) == std::vector<std::string>{"10.1.2.3", "fd00::3"});
  CHECK(addresses_of_interface("fd00::3", own) == std::vector<std::string>{"fd00::3"});
  CHECK(addresses_for_other_machines("eth0", own) == addresses_of_interface("eth0", own));
  CHECK_THROWS_WITH(addresses_for_other_machines("lo", own),
                    "exchange.interface: \"lo\" is the loopback of rank 0's machine, which ranks on other machines do "
                    "not reach; there are: eth0 (10.1.2.3, fd00::3)");
  CHECK_THROWS_WITH(addresses_of_interface("wg0", own),
                    Contains("exchange.interface: \"wg0\" is no interface of rank 0's machine") &&
                        Contains("there are: eth0 (10.1.2.3, fd00::3), lo (127.0.0.1, ::1)"));
  const std::vector<OwnAddress> twice = {{"eth0", "10.1.2.3"}, {"vip0", "10.1.2.3"}, {"lo", "127.0.0.1"}};
  CHECK(addresses_of_interface("10.1.2.3", twice) == std::vector<std::string>{"10.1.2.3"});
  CHECK(distinct_addresses(twice) == std::vector<std::string>{"10.1.2.3", "127.0.0.1"});
  auto ranks = ranks_at(tcp(), 2, kLong);
  for (Rank& rank : ranks) rank.options.interface = "127.0.0.1";
  CHECK(outcomes(ranks) == kFine2);
  ranks[0].options.interface = "no0";
  CHECK_THAT(outcome(ranks[0].launch, ranks[0].options), Contains("exchange.interface: \"no0\""));
}

TEST_CASE("rank 0 listens at its own address of the place, and everywhere where the place does not tell",
          "[rendezvous]") {
  using Addresses = std::vector<std::string>;
  const std::vector<OwnAddress> own = {{"lo", "127.0.0.1"}, {"eth0", "10.1.2.3"}, {"eth1", "10.9.9.9"}};
  CHECK(meeting_addresses("node1", {"10.1.2.3"}, own) == Addresses{"10.1.2.3"});
  CHECK(meeting_addresses("node1", {"127.0.1.1", "10.1.2.3", "10.1.2.3"}, own) == Addresses{"127.0.1.1", "10.1.2.3"});
  CHECK(meeting_addresses("10.9.9.9", {"10.9.9.9"}, own) == Addresses{"10.9.9.9"});
  CHECK(meeting_addresses("localhost", {"::1", "127.0.0.1"}, own) == Addresses{"::1", "127.0.0.1"});
  CHECK(meeting_addresses("127.0.0.1", {"127.0.0.1"}, own) == Addresses{"127.0.0.1"});
  CHECK(meeting_addresses("node1", {"127.0.1.1"}, own) == kEverywhere);      // /etc/hosts of node1 itself
  CHECK(meeting_addresses("gateway", {"203.0.113.5"}, own) == kEverywhere);  // an address that is translated
}
