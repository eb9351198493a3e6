#include "dist/meeting/handshake.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <catch.hpp>
#include <cstring>
#include <memory>
#include <thread>

#include "dist/meeting/interfaces.h"
#include "dist/meeting/reception.h"

using namespace dgc;
using Catch::Contains;

namespace {

constexpr std::chrono::seconds kEnough(20);

using Frame = std::array<std::byte, 24>;

Frame frame_of(int seed) {
  Frame frame;
  for (size_t i = 0; i < frame.size(); ++i) frame[i] = static_cast<std::byte>(static_cast<int>(i) * 3 + seed);
  return frame;
}

using Side = SealedSession::Side;

// Both sides of a conversation.
struct Conversation {
  explicit Conversation(Purpose purpose = Purpose::rendezvous, const Secret& at_host = Secret({std::byte{1}}),
                        const Secret& at_caller = Secret({std::byte{1}}))
      : greetings{make_greeting(purpose), make_greeting(purpose)},
        host(at_host, Side::host, greetings[0], greetings[1]),
        caller(at_caller, Side::caller, greetings[0], greetings[1]) {}
  std::array<Greeting, 2> greetings;
  SealedSession host, caller;
};

bool opens(SealedSession& session, const std::vector<std::byte>& sealed) {
  Frame frame;
  return session.open(sealed, frame);
}

// Two ends of a connection.
std::array<Socket, 2> connected() {
  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
  return {Socket(ends[0]), Socket(ends[1])};
}

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

TEST_CASE("sealed frames open in their order, on the other side", "[handshake]") {
  Conversation talk;
  for (int n = 0; n < 5; ++n) {
    for (auto* const from : {&talk.caller, &talk.host}) {
      const std::vector<std::byte> sealed = from->seal(frame_of(n));
      from->note_sent();
      CHECK(sealed.size() == sizeof(Frame) + kSealBytes);
      CHECK(std::memcmp(sealed.data(), frame_of(n).data(), sizeof(Frame)) != 0);
      Frame frame;
      CHECK((from == &talk.caller ? talk.host : talk.caller).open(sealed, frame));
      CHECK(frame == frame_of(n));
    }
  }
}

TEST_CASE("a frame that was not sent is not missed", "[handshake]") {
  Conversation talk;
  [[maybe_unused]] const auto lost = talk.caller.seal(frame_of(1));
  CHECK(opens(talk.host, talk.caller.seal(frame_of(2))));
}

TEST_CASE("nothing else opens, and nothing after it", "[handshake]") {
  Conversation talk;
  const Conversation another, heartbeat(Purpose::heartbeat),
      wrong(Purpose::rendezvous, Secret({std::byte{2}}), Secret({std::byte{2}}));
  std::vector<std::byte> good = talk.caller.seal(frame_of(1)), said = good;
  SealedSession later = talk.caller;
  later.note_sent();
  SECTION("a bit that has changed") { said[static_cast<size_t>(GENERATE(0, 12, 23, 24, 39))] ^= std::byte{4}; }
  SECTION("a recording of another conversation") { said = another.caller.seal(frame_of(1)); }
  SECTION("a frame of another purpose") { said = heartbeat.caller.seal(frame_of(1)); }
  SECTION("a frame of one with another secret") { said = wrong.caller.seal(frame_of(1)); }
  SECTION("the host's own frame, sent back") { said = talk.host.seal(frame_of(1)); }
  SECTION("a frame whose predecessor is missing") {
    talk.caller.note_sent();
    said = talk.caller.seal(frame_of(1));
  }
  CHECK_FALSE(opens(talk.host, said));
  CHECK_FALSE(opens(talk.host, later.seal(frame_of(2))));
  CHECK_FALSE(opens(talk.host, good));
}

TEST_CASE("a frame does not open twice", "[handshake]") {
  Conversation talk;
  const std::vector<std::byte> sealed = talk.caller.seal(frame_of(1));
  CHECK(opens(talk.host, sealed));
  CHECK_FALSE(opens(talk.host, sealed));
}

TEST_CASE("the keys depend on what each side has drawn, and on the purpose", "[handshake]") {
  const Greeting host = make_greeting(Purpose::rendezvous), caller = make_greeting(Purpose::rendezvous);
  CHECK(host.nonce != caller.nonce);
  const Secret secret({std::byte{1}});
  const SealedSession truth(secret, Side::caller, host, caller);
  Greeting other_host = host, other_caller = caller;
  SECTION("the host's nonce") { other_host.nonce[31] ^= std::byte{1}; }
  SECTION("the caller's nonce") { other_caller.nonce[0] ^= std::byte{1}; }
  SECTION("the purpose that the host says") { other_host.purpose = Purpose::heartbeat; }
  SECTION("the purpose that the caller says") { other_caller.purpose = Purpose::heartbeat; }
  SECTION("the version") { other_caller.version = 2; }
  SealedSession changed(secret, Side::host, other_host, other_caller);
  CHECK_FALSE(opens(changed, truth.seal(frame_of(1))));
}

TEST_CASE("a greeting is judged as soon as it can be", "[handshake]") {
  const Greeting good = make_greeting(Purpose::heartbeat);
  const auto judged = [](const Greeting& greeting, size_t bytes) {
    return objection_to(bytes_of(greeting).first(bytes), Purpose::heartbeat);
  };
  for (size_t bytes = 0; bytes <= sizeof(good); ++bytes) CHECK(judged(good, bytes).empty());
  Greeting other = good;
  other.magic ^= 1;
  CHECK(judged(other, 1) == "it is another program");
  other = good;
  other.version = 3;
  CHECK(judged(other, 11).empty());
  CHECK_THAT(judged(other, 12), Contains("another dgc, with version 3 of the handshake in place of 1"));
  other = make_greeting(Purpose::rendezvous);
  CHECK(judged(other, 15).empty());
  CHECK(judged(other, 16) == "it is there for something else");
}

TEST_CASE("a false rank 0 that sends a rank's own words back is not believed", "[handshake]") {
  const auto ends = connected();
  const Deadline deadline = std::chrono::steady_clock::now() + kEnough;
  REQUIRE(send_all(ends[0], bytes_of(make_greeting(Purpose::rendezvous)), deadline));
  Trouble trouble;
  auto session = introduce(ends[1], Secret({std::byte{1}}), Purpose::rendezvous, frame_of(1), deadline, trouble);
  REQUIRE(session);
  std::array<std::byte, sizeof(Greeting) + sizeof(Frame) + kSealBytes> said{};
  REQUIRE(receive_all(ends[0], said, deadline));
  REQUIRE(send_all(ends[0], std::span(said).subspan(sizeof(Greeting)), deadline));
  Frame frame;
  trouble = receive_sealed(ends[1], *session, frame, deadline);
  CHECK(trouble.text == "what answers there does not know this rank's secret");
}

TEST_CASE("a rank says what is wrong with who answers", "[handshake]") {
  const auto ends = connected();
  const Deadline deadline = std::chrono::steady_clock::now() + kEnough;
  const auto met = [&](std::span<const std::byte> answer) {
    send_all(ends[0], answer, deadline);
    shutdown(ends[0].get(), SHUT_WR);
    Trouble trouble;
    CHECK_FALSE(introduce(ends[1], Secret(), Purpose::rendezvous, frame_of(1), deadline, trouble));
    return trouble;
  };
  Greeting greeting = make_greeting(Purpose::rendezvous);
  SECTION("another version") {
    greeting.version = 2;
    const Trouble trouble = met(bytes_of(greeting));
    CHECK(trouble.text == "it is another dgc, with version 2 of the handshake in place of 1, that answers there");
    CHECK(trouble.of_place);  // an error soon
  }
  SECTION("the heartbeat of a run") {
    greeting.purpose = Purpose::heartbeat;
    CHECK(met(bytes_of(greeting)).text == "it is there for something else that answers there");
  }
  SECTION("few words") {
    CHECK(met(std::as_bytes(std::span("SSH-2.0-", 8))).text == "it is another program that answers there");
  }
  SECTION("no word") { CHECK(met({}).text == "it hangs up without a word"); }
  SECTION("half a greeting") { CHECK(met(bytes_of(greeting).first(40)).text == "it hangs up without a word"); }
}

namespace {

// A reception on the loopback, and those who come there.
struct Place {
  explicit Place(size_t most, std::chrono::milliseconds patience = kEnough) {
    std::string problem;
    auto listeners = listen_at(kLoopback, port, problem);
    reception = std::make_unique<Reception>(std::move(listeners), secret,
                                            Reception::Rules{Purpose::heartbeat, sizeof(Frame), most, patience});
  }
  Socket connect() {
    Trouble trouble;
    Socket socket = connect_to(kLoopback, port, deadline, trouble);
    REQUIRE(socket);
    return socket;
  }
  // As from another machine: from 127.0.0.2.
  Socket connect_from_elsewhere() {
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    REQUIRE(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    REQUIRE(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    return socket;
  }
  // Receives until `condition` holds.
  template <typename Condition>
  bool serve(const Condition& condition) {
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      for (Reception::Caller& caller : reception->receive()) callers.push_back(std::move(caller));
      std::this_thread::yield();
    }
    return condition();
  }
  bool told(const std::string& words) {
    return serve([&] { return reception->strangers().find(words) != std::string::npos; });
  }

  Secret secret{{std::byte{1}}};
  int port = 0;
  Deadline deadline = std::chrono::steady_clock::now() + kEnough;
  std::unique_ptr<Reception> reception;
  std::vector<Reception::Caller> callers;
};

// What a rank says to a host with this greeting.
std::vector<std::byte> words_for(const Greeting& host, const Secret& secret, const Frame& frame) {
  const Greeting own = make_greeting(Purpose::heartbeat);
  const SealedSession session(secret, Side::caller, host, own);
  std::vector<std::byte> all(bytes_of(own).begin(), bytes_of(own).end());
  const auto sealed = session.seal(frame);
  all.insert(all.end(), sealed.begin(), sealed.end());
  return all;
}

Greeting heard_greeting(Place& place, const Socket& socket) {
  // Serving takes as many rounds as it takes the system to hand the connection on.
  Greeting greeting;
  std::jthread listens([&] { receive_all(socket, std::as_writable_bytes(std::span(&greeting, 1)), place.deadline); });
  std::atomic<bool> heard = false;
  std::jthread waits([&] {
    listens.join();
    heard = true;
  });
  CHECK(place.serve([&] { return heard.load(); }));
  return greeting;
}

}  // namespace

TEST_CASE("who knows the secret is let in, however slowly it says so", "[handshake]") {
  Place place(4);
  const Socket rank = place.connect();
  const std::vector<std::byte> words = words_for(heard_greeting(place, rank), place.secret, frame_of(5));
  for (const std::byte one : words) {
    CHECK(place.callers.empty());
    REQUIRE(send_all(rank, std::span(&one, 1), place.deadline));
    for (Reception::Caller& caller : place.reception->receive()) place.callers.push_back(std::move(caller));
  }
  REQUIRE(place.serve([&] { return !place.callers.empty(); }));
  CHECK(std::memcmp(place.callers[0].first.data(), frame_of(5).data(), sizeof(Frame)) == 0);
  CHECK(place.reception->strangers().empty());
}

TEST_CASE("a stranger is turned away, and it is said why", "[handshake]") {
  Place place(4);
  const Socket stranger = place.connect();
  const Greeting host = heard_greeting(place, stranger);
  const auto says = [&](std::span<const std::byte> words) { send_all(stranger, words, place.deadline); };
  std::string why;
  SECTION("noise") {
    says(std::as_bytes(std::span("GET / HTTP/1.1\r\n", 16)));
    why = "it is another program";
  }
  SECTION("the greeting of rank 0, sent back") {
    says(bytes_of(host));
    says(std::vector<std::byte>(sizeof(Frame) + kSealBytes));
    why = "it does not know the secret";
  }
  SECTION("another secret") {
    says(words_for(host, Secret({std::byte{2}}), frame_of(5)));
    why = "it does not know the secret";
  }
  SECTION("no secret") {
    says(words_for(host, Secret(), frame_of(5)));
    why = "it does not know the secret";
  }
  SECTION("what a rank said to a rank 0 of before") {
    says(words_for(make_greeting(Purpose::heartbeat), place.secret, frame_of(5)));
    why = "it does not know the secret";
  }
  SECTION("an end") {
    shutdown(stranger.get(), SHUT_WR);
    why = "it left before it had said who it is";
  }
  CHECK(place.told("; 1 stranger was turned away, the last one, from 127.0.0.1, because " + why));
  CHECK(place.callers.empty());
}

TEST_CASE("a stranger that says nothing, or says it byte by byte, has little time", "[handshake]") {
  SECTION("nothing") {
    Place place(4, std::chrono::milliseconds(0));
    const Socket silent = place.connect();
    CHECK(place.told("because it did not say who it is in time"));
  }
  SECTION("byte by byte") {
    Place place(4, std::chrono::milliseconds(200));
    const Socket slow = place.connect();
    const std::vector<std::byte> words = words_for(heard_greeting(place, slow), place.secret, frame_of(5));
    size_t said = 0;
    auto next = std::chrono::steady_clock::now();
    CHECK(place.serve([&] {
      if (std::chrono::steady_clock::now() >= next && said < words.size()) {
        send_all(slow, std::span(words).subspan(said++, 1), place.deadline);
        next += std::chrono::milliseconds(20);
      }
      return !place.reception->strangers().empty();
    }));
    CHECK_THAT(place.reception->strangers(), Contains("because it did not say who it is in time"));
    CHECK(said < words.size() / 2);  // 11 bytes at most fall into the 200 ms
  }
}

TEST_CASE("a thousand strangers keep nobody out, and few of them are there at once", "[handshake]") {
  Place place(8);
  std::vector<Socket> strangers;
  for (int n = 0; n < 1000; ++n) {
    strangers.push_back(place.connect());
    if (strangers.size() > 200) strangers.erase(strangers.begin());  // this process has room for so many files alone
    if (n % 50 == 0) place.reception->receive();
  }
  std::vector<pollfd> polled;
  place.reception->add_to(polled);
  CHECK(polled.size() <= 8 + kLoopback.size());
  const Socket rank = place.connect();
  const std::vector<std::byte> words = words_for(heard_greeting(place, rank), place.secret, frame_of(5));
  REQUIRE(send_all(rank, words, place.deadline));
  CHECK(place.serve([&] { return place.callers.size() == 1; }));
  CHECK_THAT(place.reception->strangers(), Contains("strangers were turned away, the last one, from 127.0.0.1"));
}

TEST_CASE("strangers that stay are few too, and the one that came first goes first", "[handshake]") {
  Place place(8);
  std::vector<Socket> strangers;
  const auto come = [&](int many) {
    for (int n = 0; n < many; ++n) strangers.push_back(place.connect());
  };
  come(40);
  CHECK(place.told("; 32 strangers were turned away"));
  CHECK_THAT(place.reception->strangers(), Contains("because there were too many"));
  std::vector<pollfd> polled;
  place.reception->add_to(polled);
  CHECK(polled.size() <= 8 + kLoopback.size());
  const Socket rank = place.connect();
  const std::vector<std::byte> words = words_for(heard_greeting(place, rank), place.secret, frame_of(5));
  come(4);
  CHECK(place.told("; 37 strangers were turned away"));
  REQUIRE(send_all(rank, words, place.deadline));
  CHECK(place.serve([&] { return place.callers.size() == 1; }));
}

TEST_CASE("strangers of one address drive out none of another", "[handshake]") {
  Place place(8);
  const Socket rank = place.connect_from_elsewhere();
  const std::vector<std::byte> words = words_for(heard_greeting(place, rank), place.secret, frame_of(5));
  std::vector<Socket> strangers;
  for (int n = 0; n < 40; ++n) strangers.push_back(place.connect());
  CHECK(place.told("; 33 strangers were turned away, the last one, from 127.0.0.1, because there were too many"));
  REQUIRE(send_all(rank, words, place.deadline));
  CHECK(place.serve([&] { return place.callers.size() == 1; }));
}
