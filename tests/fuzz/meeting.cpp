// The rendezvous over TCP: what strangers say to rank 0, and what false ranks 0 answer to a rank. Whatever they say,
// those who belong together must find each other: behind the strangers comes everyone who is expected. The input: byte
// 0 bit 0 whether this process is rank 0, byte 1 how many strangers there are; each says what is right but for some
// parts, perhaps with another secret, or anything, in pieces.
#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "dist/communicator.h"
#include "dist/meeting/fixed_text.h"
#include "dist/meeting/rendezvous_ways.h"
#include "tests/fuzz/support/fake_socket.h"
#include "tests/fuzz/support/sealed.h"

using namespace dgc;
using fuzz::Input;
using fuzz::Pieces;
using fuzz::require;

namespace {

constexpr uint32_t kRanks = 4;
constexpr size_t kBlobBytes = 40, kMostStrangers = 6;
const std::string kBlob(kBlobBytes, 'b');
const Secret kSecret({std::byte{9}});
const std::string kRun = "a run";
constexpr size_t kWordsBytes = sizeof(Greeting) + sizeof(Hello) + kSealBytes;
using Side = SealedSession::Side;

Secret secret_from(Input& input) {
  const auto change = input.take<uint8_t>();
  return (change & 1) == 0 ? kSecret : (change & 2) == 0 ? Secret() : Secret({std::byte{change}});
}

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

std::string words_from(Input& input) {
  auto changes = input.take<uint16_t>();
  if ((changes & 0x8000) != 0) return input.take_text(input.take<uint8_t>());
  Hello hello = hello_of(input.take<uint8_t>() % (kRanks + 1));
  maybe_change(input, changes, hello.nonce);
  maybe_change(input, changes, hello.magic);
  maybe_change(input, changes, hello.version);
  maybe_change(input, changes, hello.rank);
  maybe_change(input, changes, hello.size);
  maybe_change(input, changes, hello.blob_bytes);
  maybe_change(input, changes, hello.run);
  if ((changes & 1) != 0)
    set_text(hello.failure, input.take_text(input.take<uint16_t>() % sizeof(hello.failure)).c_str());
  const Greeting greeting = fuzz::greeting_from(input, Purpose::rendezvous);
  return fuzz::first_words(greeting, secret_from(input), fuzz::bytes_of(hello)) +
         input.take_text(input.take<uint8_t>() % 32);
}

// A false rank 0's greeting, reply and blob.
std::string answer_from(Input& input, const Hello& asked) {
  auto changes = input.take<uint16_t>();
  if ((changes & 0x8000) != 0) return input.take_text(input.take<uint8_t>());
  Reply reply = reply_to(asked);
  reply.verdict = static_cast<Verdict>(input.take<uint8_t>() % 9);
  maybe_change(input, changes, reply.magic);
  maybe_change(input, changes, reply.version);
  maybe_change(input, changes, reply.nonce);
  maybe_change(input, changes, reply.size);
  if ((changes & 1) != 0) set_text(reply.text, input.take_text(input.take<uint16_t>() % sizeof(reply.text)).c_str());
  const Greeting greeting = fuzz::greeting_from(input, Purpose::rendezvous);
  fuzz::Speaker host(secret_from(input), Side::host, greeting, make_greeting(Purpose::rendezvous));
  return fuzz::bytes_of(greeting) + host.seal(fuzz::bytes_of(reply)) + host.seal(input.take_text(kBlobBytes));
}

Meeting meeting_of(const MeetingPoint& point, uint32_t rank) {
  static const RendezvousOptions options;  // a timeout of minutes, reached only by who hangs
  return {point, kSecret, kRun, hello_of(rank), options, std::chrono::steady_clock::now() + options.timeout};
}

// What rank 0, or a false one, must have heard; nothing where it must not have believed it.
std::optional<Hello> heard_hello(const std::string& words, const Greeting& host) {
  const auto frame = fuzz::understood(words, kSecret, host, sizeof(Hello));
  if (!frame) return {};
  return fuzz::from_bytes<Hello>(*frame);
}

// Welcome are those alone whose greeting differs from an expected one in nothing but the nonce.
bool belongs(const Hello& hello) {
  if (hello.rank >= kRanks) return false;
  Hello right = hello_of(hello.rank);
  if (hello.rank > 0) right.nonce = hello.nonce;  // rank 0 is this process alone
  right.magic = hello.magic;                      // tells files of other programs apart, which come without a seal
  return fuzz::bytes_of(right) == fuzz::bytes_of(hello);
}

// What a rank of this run, and nobody else, can say: that a rank failed.
bool tells_failure(const Hello& hello) {
  const Hello right = hello_of(hello.rank);
  return hello.version == right.version && hello.run == right.run && hello.size == right.size && hello.rank < kRanks &&
         !get_text(hello.failure).empty();
}

void be_rank_0(Input& input, const MeetingPoint& point) {
  std::vector<std::string> said;
  std::vector<fuzz::Stranger> guests;
  for (size_t n = input.take<uint8_t>() % (kMostStrangers + 1); n > 0; --n) {
    Pieces pieces = fuzz::cut(words_from(input), input);
    guests.push_back(fuzz::put_stranger(pieces));
    said.push_back(fuzz::hear(pieces, kWordsBytes));
  }
  const Greeting usual = make_greeting(Purpose::rendezvous);
  for (uint32_t rank = 1; rank < kRanks; ++rank) {
    said.push_back(fuzz::first_words(usual, kSecret, fuzz::bytes_of(hello_of(rank))));
    guests.push_back(fuzz::put_stranger({said.back()}));
  }
  std::vector<std::optional<Hello>> hellos;
  for (const std::string& words : said) hellos.push_back(heard_hello(words, usual));
  const auto tells = [](const std::optional<Hello>& hello) { return hello && tells_failure(*hello); };
  bool met = true;
  try {
    host_over_tcp(meeting_of(point, 0), std::as_bytes(std::span(kBlob)));
  } catch (const ToldByPeer& error) {
    met = false;
    require(std::ranges::any_of(hellos,
                                [&](const auto& one) { return tells(one) && get_text(one->failure) == error.what(); }));
  }

  // Who is answered after a failure was told learns of it, even though the rank itself is expected.
  const bool failure_told = std::ranges::any_of(hellos, tells);
  std::vector<bool> served(kRanks);
  for (size_t i = 0; i < guests.size(); ++i) {
    const std::string heard = guests[i].heard();
    if (heard.empty()) continue;
    require(heard.starts_with(fuzz::bytes_of(usual)));
    const std::string answer = heard.substr(sizeof(Greeting));
    if (answer.empty()) continue;
    require(hellos[i].has_value());
    const Hello& hello = *hellos[i];
    fuzz::Speaker guest(kSecret, Side::caller, usual, fuzz::from_bytes<Greeting>(said[i]));
    const auto opened = guest.open(answer.substr(0, sizeof(Reply) + kSealBytes));
    require(opened.has_value());
    const auto reply = fuzz::from_bytes<Reply>(*opened);
    const std::string rest = answer.substr(sizeof(Reply) + kSealBytes);
    require(reply.magic == kMeetingMagic && reply.nonce == hello.nonce && reply.size == kRanks);
    if (reply.verdict == Verdict::welcome) {
      require(belongs(hello) && guest.open(rest) == kBlob);
      served[hello.rank] = true;
    } else {
      const bool failed = reply.verdict == Verdict::failed;
      require(rest.empty() && (failed || reply.verdict == Verdict::taken || !belongs(hello)));
      require(failed ? failure_told : !tells_failure(hello));
    }
  }
  require(!met || std::all_of(served.begin() + 1, served.end(), [](bool one) { return one; }));
}

// introduce() reads the magic by itself, and the rest only where the magic is right.
Pieces behind_magic(const std::string& said, const std::function<Pieces(const std::string&)>& cut_rest) {
  if (said.size() <= fuzz::kMagicBytes) return {said};
  Pieces pieces = cut_rest(said.substr(fuzz::kMagicBytes));
  pieces.insert(pieces.begin(), said.substr(0, fuzz::kMagicBytes));
  return pieces;
}

std::optional<Greeting> hear_greeting(Pieces& pieces) {
  const Greeting right = make_greeting(Purpose::rendezvous);
  std::string said = fuzz::hear(pieces, fuzz::kMagicBytes);
  if (said == fuzz::bytes_of(kHandshakeMagic)) said += fuzz::hear(pieces, sizeof(Greeting) - fuzz::kMagicBytes);
  const auto greeting = fuzz::from_bytes<Greeting>(said);
  if (said.size() < sizeof(Greeting) || greeting.version != right.version || greeting.purpose != right.purpose)
    return {};
  return greeting;
}

void be_another(Input& input, const MeetingPoint& point) {
  const Meeting meeting = meeting_of(point, 2);
  const Greeting usual = make_greeting(Purpose::rendezvous);
  std::vector<Pieces> answers;
  for (size_t n = input.take<uint8_t>() % (kMostStrangers + 1); n > 0; --n) {
    const auto cut = [&](const std::string& rest) { return fuzz::cut(rest, input); };
    answers.push_back(behind_magic(answer_from(input, meeting.hello), cut));
  }
  fuzz::Speaker host(kSecret, Side::host, usual, usual);
  const std::string reply = host.seal(fuzz::bytes_of(reply_to(meeting.hello)));
  answers.push_back(behind_magic(fuzz::bytes_of(usual), [&](const std::string& rest) {
    return Pieces{rest, reply, host.seal(kBlob)};
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
  for (size_t i = 0; i < answers.size(); ++i) {  // the first that knows the secret decides
    const auto greeting = hear_greeting(answers[i]);
    if (!greeting) continue;
    fuzz::Speaker rank(kSecret, Side::caller, *greeting, usual);
    const auto opened = rank.open(fuzz::hear(answers[i], sizeof(Reply) + kSealBytes));
    if (!opened || opened->size() < sizeof(Reply)) continue;
    const auto said = fuzz::from_bytes<Reply>(*opened);
    const auto second = rank.open(fuzz::hear(answers[i], kBlobBytes + kSealBytes));
    if (said.verdict == Verdict::welcome && (!second || second->size() < kBlobBytes)) continue;
    require(answered == (said.verdict == Verdict::welcome || said.verdict == Verdict::failed));
    require(told.has_value() == (said.verdict == Verdict::failed));
    require(!told || *told == get_text(said.text));
    require(said.verdict != Verdict::welcome || blob == *second);
    const auto hello = heard_hello(hosts[i].heard(), *greeting);
    require(hello && fuzz::bytes_of(*hello) == fuzz::bytes_of(meeting.hello));
    return;
  }
  require(false);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MeetingPoint point{"meeting.example", 1234, ""};
  fuzz::draw_alike();
  Input input(data, size);
  (input.take<uint8_t>() & 1) != 0 ? be_rank_0(input, point) : be_another(input, point);
  fuzz::send_home();
  return 0;
}
