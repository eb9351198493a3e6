#include "dist/rendezvous.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "dist/roster.h"
#include "dist/socket.h"
#include "tensor/errors.h"
#include "tests/dist/free_port.h"

using namespace dgc;
using namespace dgc::test;
using Catch::Contains;
using std::chrono::milliseconds;

namespace {

namespace fs = std::filesystem;
using Blob = std::array<std::byte, 128>;

struct Directory {
  Directory() {
    std::string name = (fs::temp_directory_path() / "dgc_meeting_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Directory() { fs::remove_all(path); }
  bool empty() const { return fs::is_empty(path); }
  fs::path path;
};

MeetingPoint tcp(const std::string& host = "127.0.0.1") {
  MeetingPoint point;
  point.host = host;
  point.port = free_port();
  return point;
}

MeetingPoint in_files(const Directory& directory) {
  MeetingPoint point;
  point.path = (directory.path / "meet").string();
  return point;
}

Launch launch_of(int rank, int size, const MeetingPoint& point) {
  Launch launch;
  launch.rank = rank;
  launch.size = size;
  launch.run = "test 1";
  launch.meeting = point;
  return launch;
}

Blob blob_of(int seed) {
  Blob blob;
  for (size_t i = 0; i < blob.size(); ++i) blob[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(seed));
  return blob;
}

RendezvousOptions within(milliseconds timeout) {
  RendezvousOptions options;
  options.config = 42;
  options.timeout = timeout;
  return options;
}

constexpr milliseconds kLong(20000), kShort(250);

// What became of one rank: "" when it got rank 0's blob.
std::string outcome(const Launch& launch, const RendezvousOptions& options) {
  Blob blob = launch.rank == 0 ? blob_of(1) : Blob{};
  try {
    share_from_rank0(launch, options, blob);
  } catch (const UserError& error) {
    return error.what();
  }
  return blob == blob_of(1) ? "" : "wrong bytes";
}

struct Rank {
  Launch launch;
  RendezvousOptions options;
  milliseconds delay{0};
};

std::vector<std::string> outcomes(const std::vector<Rank>& ranks) {
  std::vector<std::string> all(ranks.size());
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      std::this_thread::sleep_for(ranks[i].delay);
      all[i] = outcome(ranks[i].launch, ranks[i].options);
    });
  }
  threads.clear();
  return all;
}

std::vector<Rank> ranks_at(const MeetingPoint& point, int size, milliseconds timeout) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back({launch_of(rank, size, point), within(timeout)});
  return ranks;
}

const std::vector<std::string> kFine2(2), kFine3(3);

}  // namespace

TEST_CASE("all ranks get rank 0's bytes", "[rendezvous]") {
  const int size = GENERATE(1, 2, 3, 9);
  const Directory directory;
  CAPTURE(size);
  CHECK(outcomes(ranks_at(tcp(), size, kLong)) == std::vector<std::string>(static_cast<size_t>(size)));
  CHECK(outcomes(ranks_at(in_files(directory), size, kLong)) == std::vector<std::string>(static_cast<size_t>(size)));
  CHECK(directory.empty());
}

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

TEST_CASE("rank 0 may be late, and so may others", "[rendezvous]") {
  const Directory directory;
  const int late = GENERATE(0, 2);
  for (const MeetingPoint& point : {tcp(), in_files(directory)}) {
    auto ranks = ranks_at(point, 3, kLong);
    ranks[static_cast<size_t>(late)].delay = milliseconds(150);
    CHECK(outcomes(ranks) == kFine3);
  }
}

TEST_CASE("two runs in a row can meet at one place", "[rendezvous]") {
  const Directory directory;
  for (const MeetingPoint& point : {tcp(), in_files(directory)}) {
    for (int run = 0; run < 3; ++run) CHECK(outcomes(ranks_at(point, 3, kLong)) == kFine3);
  }
}

TEST_CASE("a missing rank ends the wait of the others, by name", "[rendezvous]") {
  const Directory directory;
  for (const MeetingPoint& point : {tcp(), in_files(directory)}) {
    CAPTURE(point.url());
    auto ranks = ranks_at(point, 4, kShort);
    ranks.erase(ranks.begin() + 1);
    ranks.pop_back();
    const auto found = outcomes(ranks);  // ranks 0 and 2
    CHECK_THAT(found[0], Contains("rank 0 waited 0.25 s at " + point.url()) && Contains("ranks 1, 3 did not come"));
    CHECK(found[1].empty());
    const std::string alone = outcome(launch_of(1, 2, point), within(kShort));
    CHECK_THAT(alone, Contains("rank 1 of 2 did not find rank 0 at " + point.url() + " within 0.25 s"));
  }
  CHECK(directory.empty());
}

TEST_CASE("a rank that does not belong is turned away and told why", "[rendezvous]") {
  const Directory directory;
  const MeetingPoint point = GENERATE(false, true) ? in_files(directory) : tcp();
  CAPTURE(point.url());
  auto ranks = ranks_at(point, 2, kShort);
  std::string fault, seen;
  SECTION("another size") {
    ranks[1].launch.size = 3;
    fault = "rank 0 counts 2 ranks and this one 3";
    seen = "the number of ranks";
  }
  SECTION("another config") {
    ranks[1].options.config = 43;
    fault = "their configs differ";
    seen = "the config";
  }
  SECTION("another run") {
    ranks[1].launch.run = "test 2";
    fault = "belongs to another run";
    seen = "the run";
  }
  const auto found = outcomes(ranks);
  CHECK_THAT(found[0], Contains("rank 1 did not come; rank 1 was turned away, as it differs in " + seen));
  CHECK_THAT(found[1], Contains("was turned away by rank 0: ") && Contains(fault) && Contains(point.url()));
}

TEST_CASE("after one that does not belong the right one can still come", "[rendezvous]") {
  const Directory directory;
  for (const MeetingPoint& point : {tcp(), in_files(directory)}) {
    auto ranks = ranks_at(point, 2, kLong);
    ranks.push_back(ranks[1]);
    ranks[1].options.config = 43;
    ranks[2].delay = milliseconds(150);
    const auto found = outcomes(ranks);
    CHECK(found[0].empty());
    CHECK_THAT(found[1], Contains("their configs differ"));
    CHECK(found[2].empty());
  }
  CHECK(directory.empty());
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

TEST_CASE("an unknown host and an unwritable directory are named", "[rendezvous]") {
  CHECK_THAT(outcome(launch_of(1, 2, tcp("no-such-host.invalid")), within(milliseconds(100))),
             Contains("did not find rank 0 at tcp://no-such-host.invalid:"));
  MeetingPoint nowhere;
  nowhere.path = "/no/such/directory/meet";
  CHECK_THAT(outcome(launch_of(1, 2, nowhere), within(kShort)),
             Contains("rank 1 cannot write /no/such/directory/meet.1.hello") && Contains("No such file"));
}

TEST_CASE("files of a run that died are not taken for this one's", "[rendezvous]") {
  const Directory directory;
  const MeetingPoint point = in_files(directory);
  const auto plant = [&](const std::string& name, const auto& what) {
    std::vector<std::byte> bytes(sizeof(what) + sizeof(Blob));
    std::memcpy(bytes.data(), &what, sizeof(what));
    std::ofstream(directory.path / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  // What a run with the very same ranks, config and size left behind when it was killed.
  Hello hello;
  hello.size = 3;
  hello.blob_bytes = sizeof(Blob);
  hello.config = 42;
  hello.nonce = 7;
  hello.rank = 1;
  plant("meet.1.hello", hello);
  Reply reply;
  reply.nonce = 7;
  reply.size = 3;
  plant("meet.1.reply", reply);
  plant("meet.2.reply", reply);
  auto ranks = ranks_at(point, 3, kLong);
  const size_t late = GENERATE(0u, 1u, 2u);
  ranks[late].delay = milliseconds(100);
  for (Rank& rank : ranks) rank.launch.run.clear();  // the launcher does not tell one run from another
  CHECK(outcomes(ranks) == kFine3);
  CHECK(directory.empty());
}

TEST_CASE("a rank has one process", "[rendezvous]") {
  Hello own;
  own.size = 3;
  Roster roster(own);
  Hello hello = own;
  hello.rank = 1;
  hello.nonce = 5;
  CHECK(roster.answer(hello).verdict == Verdict::welcome);
  roster.serve(1);
  CHECK(roster.answer(hello).verdict == Verdict::welcome);  // the same process, whose connection broke
  hello.nonce = 6;
  CHECK(roster.answer(hello).verdict == Verdict::taken);
  CHECK_THAT(refusal(hello, roster.answer(hello)), Contains("the same rank"));
  hello.rank = 0;
  CHECK(roster.answer(hello).verdict == Verdict::taken);  // so is rank 0's seat
  hello.rank = 3;
  CHECK(roster.answer(hello).verdict == Verdict::rank);
  hello.rank = 2;
  hello.version = 9;
  CHECK(roster.answer(hello).verdict == Verdict::version);
  hello.version = own.version;
  hello.blob_bytes = 8;
  CHECK(roster.answer(hello).verdict == Verdict::blob);
  CHECK_FALSE(roster.complete());
  roster.serve(2);
  roster.serve(2);
  CHECK(roster.complete());
}
