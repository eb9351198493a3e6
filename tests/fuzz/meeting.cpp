// The rendezvous over TCP: what strangers say to rank 0, and what false ranks 0 answer to a rank. Whatever they say,
// those who belong together must find each other: behind the strangers comes everyone who is expected. The input: byte
// 0 bit 0 whether this process is rank 0, byte 1 how many strangers there are; each says a message that is right but
// for some parts, or anything, in pieces.
#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "dist/communicator.h"
#include "dist/fixed_text.h"
#include "dist/rendezvous_ways.h"
#include "tests/fuzz/support/fake_socket.h"

using namespace dgc;
using fuzz::Input;
using fuzz::Pieces;
using fuzz::require;

namespace {

constexpr uint32_t kRanks = 4;
constexpr size_t kBlobBytes = 40, kMostStrangers = 6;
const std::string kBlob(kBlobBytes, 'b');

template <typename T>
void maybe_change(Input& input, uint16_t& changes, T& field) {
  if ((changes & 1) != 0) field = input.take<T>();
  changes = static_cast<uint16_t>(changes >> 1);
}

Hello hello_of(uint32_t rank) {
  Hello hello;
  hello.rank = rank;
  hello.size = kRanks;
  hello.blob_bytes = kBlobBytes;
  hello.config = 3;
  hello.run = 5;
  hello.nonce = 100 + rank;
  return hello;
}

Reply reply_to(const Hello& hello) {
  Reply reply;
  reply.nonce = hello.nonce;
  reply.size = hello.size;
  return reply;
}

std::string hello_from(Input& input) {
  auto changes = input.take<uint16_t>();
  if ((changes & 0x8000) != 0) return input.take_text(input.take<uint8_t>());
  Hello hello = hello_of(input.take<uint8_t>() % (kRanks + 1));
  maybe_change(input, changes, hello.nonce);
  maybe_change(input, changes, hello.magic);
  maybe_change(input, changes, hello.version);
  maybe_change(input, changes, hello.rank);
  maybe_change(input, changes, hello.size);
  maybe_change(input, changes, hello.blob_bytes);
  maybe_change(input, changes, hello.config);
  maybe_change(input, changes, hello.run);
  if ((changes & 1) != 0)
    set_text(hello.failure, input.take_text(input.take<uint16_t>() % sizeof(hello.failure)).c_str());
  return fuzz::bytes_of(hello) + input.take_text(input.take<uint8_t>() % 32);
}

std::string reply_from(Input& input, const Hello& asked) {
  auto changes = input.take<uint16_t>();
  if ((changes & 0x8000) != 0) return input.take_text(input.take<uint8_t>());
  Reply reply = reply_to(asked);
  reply.verdict = static_cast<Verdict>(input.take<uint8_t>() % 10);
  maybe_change(input, changes, reply.magic);
  maybe_change(input, changes, reply.version);
  maybe_change(input, changes, reply.nonce);
  maybe_change(input, changes, reply.size);
  if ((changes & 1) != 0)
    set_text(reply.failure, input.take_text(input.take<uint16_t>() % sizeof(reply.failure)).c_str());
  return fuzz::bytes_of(reply) + input.take_text(input.take<uint8_t>() % 64);
}

Meeting meeting_of(const MeetingPoint& point, uint32_t rank) {
  static const RendezvousOptions options;  // a timeout of minutes, reached only by who hangs
  return {point, hello_of(rank), options, std::chrono::steady_clock::now() + options.timeout};
}

// Welcome are those alone whose greeting differs from an expected one in nothing but the nonce.
bool belongs(const std::string& said) {
  if (said.size() < sizeof(Hello)) return false;
  const auto hello = fuzz::from_bytes<Hello>(said);
  if (hello.rank >= kRanks) return false;
  Hello right = hello_of(hello.rank);
  if (hello.rank > 0) right.nonce = hello.nonce;  // rank 0 is this process alone
  return fuzz::bytes_of(right) == said;
}

// What a rank of this run, and nobody else, can say: that a rank failed.
bool tells_failure(const std::string& said) {
  const auto hello = fuzz::from_bytes<Hello>(said);
  const Hello right = hello_of(hello.rank);
  return said.size() == sizeof(Hello) && hello.magic == right.magic && hello.version == right.version &&
         hello.run == right.run && hello.size == right.size && hello.rank < kRanks && !get_text(hello.failure).empty();
}

void be_rank_0(Input& input, const MeetingPoint& point) {
  std::vector<std::string> said;
  std::vector<fuzz::Stranger> guests;
  for (size_t n = input.take<uint8_t>() % (kMostStrangers + 1); n > 0; --n) {
    Pieces pieces = fuzz::cut(hello_from(input), input);
    guests.push_back(fuzz::put_stranger(pieces));
    said.push_back(fuzz::hear(pieces, sizeof(Hello)));
  }
  for (uint32_t rank = 1; rank < kRanks; ++rank) {
    said.push_back(fuzz::bytes_of(hello_of(rank)));
    guests.push_back(fuzz::put_stranger({said.back()}));
  }
  bool met = true;
  try {
    host_over_tcp(meeting_of(point, 0), std::as_bytes(std::span(kBlob)));
  } catch (const ToldByPeer& error) {
    met = false;
    require(std::ranges::any_of(said, [&](const std::string& one) {
      return tells_failure(one) && get_text(fuzz::from_bytes<Hello>(one).failure) == error.what();
    }));
  }

  // Who is answered after a failure was told learns of it, even though the rank itself is expected.
  const bool failure_told = std::ranges::any_of(said, tells_failure);
  std::vector<bool> served(kRanks);
  for (size_t i = 0; i < guests.size(); ++i) {
    const std::string answer = guests[i].heard();
    if (answer.empty()) continue;
    const auto hello = fuzz::from_bytes<Hello>(said[i]);
    const auto reply = fuzz::from_bytes<Reply>(answer);
    require(said[i].size() == sizeof(Hello) && hello.magic == kMeetingMagic);
    require(reply.magic == kMeetingMagic && reply.nonce == hello.nonce && reply.size == kRanks);
    if (reply.verdict == Verdict::welcome) {
      require(belongs(said[i]) && answer.substr(sizeof(Reply)) == kBlob);
      served[hello.rank] = true;
    } else {
      const bool failed = reply.verdict == Verdict::failed;
      require(answer.size() == sizeof(Reply) && (failed || reply.verdict == Verdict::taken || !belongs(said[i])));
      require(failed ? failure_told : !tells_failure(said[i]));
    }
  }
  require(!met || std::all_of(served.begin() + 1, served.end(), [](bool one) { return one; }));
}

// join_over_tcp reads the magic by itself, and the rest only where the magic is right.
constexpr size_t kMagicBytes = sizeof(kMeetingMagic);

Pieces behind_magic(const std::string& said, const std::function<Pieces(const std::string&)>& cut_rest) {
  if (said.size() <= kMagicBytes) return {said};
  Pieces pieces = cut_rest(said.substr(kMagicBytes));
  pieces.insert(pieces.begin(), said.substr(0, kMagicBytes));
  return pieces;
}

std::string hear_reply(Pieces& pieces) {
  std::string reply = fuzz::hear(pieces, kMagicBytes);
  if (reply == fuzz::bytes_of(kMeetingMagic)) reply += fuzz::hear(pieces, sizeof(Reply) - kMagicBytes);
  return reply;
}

void be_another(Input& input, const MeetingPoint& point) {
  const Meeting meeting = meeting_of(point, 2);
  std::vector<Pieces> answers;
  for (size_t n = input.take<uint8_t>() % (kMostStrangers + 1); n > 0; --n) {
    const auto cut = [&](const std::string& rest) { return fuzz::cut(rest, input); };
    answers.push_back(behind_magic(reply_from(input, meeting.hello), cut));
  }
  answers.push_back(behind_magic(fuzz::bytes_of(reply_to(meeting.hello)), [](const std::string& rest) {
    return Pieces{rest, kBlob};
  }));
  std::vector<fuzz::Stranger> hosts;
  for (const Pieces& pieces : answers) hosts.push_back(fuzz::put_stranger(pieces));

  std::string blob(kBlobBytes, '\0');
  std::optional<std::string> told;
  const bool answered = fuzz::accepted(point.url(), [&] {
    try {
      join_over_tcp(meeting, std::as_writable_bytes(std::span(blob)));
    } catch (const ToldByPeer& error) {
      told = error.what();
    }
  });
  for (size_t i = 0; i < answers.size(); ++i) {  // the first that answers to this very question decides
    const std::string first = hear_reply(answers[i]);
    const auto reply = fuzz::from_bytes<Reply>(first);
    if (first.size() < sizeof(Reply) || reply.magic != kMeetingMagic || reply.nonce != meeting.hello.nonce) continue;
    const std::string second = fuzz::hear(answers[i], kBlobBytes);
    if (reply.verdict == Verdict::welcome && second.size() < kBlobBytes) continue;
    require(answered == (reply.verdict == Verdict::welcome || reply.verdict == Verdict::failed));
    require(told.has_value() == (reply.verdict == Verdict::failed));
    require(!told || *told == get_text(reply.failure));
    require(reply.verdict != Verdict::welcome || blob == second);
    require(hosts[i].heard() == fuzz::bytes_of(meeting.hello));
    return;
  }
  require(false);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MeetingPoint point{"meeting.example", 1234, ""};
  Input input(data, size);
  (input.take<uint8_t>() & 1) != 0 ? be_rank_0(input, point) : be_another(input, point);
  fuzz::send_home();
  return 0;
}
