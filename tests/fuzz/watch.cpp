// The heartbeat: what strangers and ranks send to rank 0's watch, and what false ranks 0 and rank 0 send to another's.
// Whoever does not know the run's secret must change nothing. The input: byte 0 bit 0 whether this process is rank 0;
// frames that are right but for some parts, perhaps with another secret, or anything, in pieces.
#include "dist/meeting/watch.h"

#include <optional>
#include <vector>

#include "dist/communicator.h"
#include "dist/meeting/fixed_text.h"
#include "dist/meeting/watch_link.h"
#include "tests/fuzz/support/fake_socket.h"
#include "tests/fuzz/support/sealed.h"

using namespace dgc;
using fuzz::Input;
using fuzz::Pieces;
using fuzz::require;

namespace {

constexpr int kRanks = 3, kOwn = 2;  // this process, where it is not rank 0
constexpr size_t kWordsBytes = sizeof(Greeting) + sizeof(WatchFrame) + kSealBytes;
constexpr size_t kMostStrangers = 5, kMostFrames = 5;

constexpr std::chrono::milliseconds kTimeout = std::chrono::minutes(10);  // reached only by who hangs

WatchOptions options_of(int rank) { return {.rank = rank, .size = kRanks, .timeout = kTimeout}; }

using Side = SealedSession::Side;

std::string frame(WatchWord word, int rank) {
  WatchFrame frame;
  frame.word = word;
  frame.rank = static_cast<uint32_t>(rank);
  frame.size = kRanks;
  frame.pid = 77;
  set_text(frame.text, "elsewhere");
  return fuzz::bytes_of(frame);
}

std::string frame_from(Input& input, uint8_t kind, WatchWord usual) {
  const auto word = (kind & 1) != 0 ? input.take<WatchWord>() : usual;
  auto made = fuzz::from_bytes<WatchFrame>(frame(word, input.take<uint8_t>() % (kRanks + 1)));
  if ((kind & 2) != 0) made.rank = input.take<uint32_t>();
  if ((kind & 4) != 0) made.size = input.take<uint32_t>();
  if ((kind & 8) != 0) made.pid = input.take<uint32_t>();
  if ((kind & 16) != 0) input.take_bytes(made.text, input.take<uint16_t>() % (sizeof(made.text) + 1));
  return fuzz::bytes_of(made);
}

// What follows in a conversation: sealed frames, and now and then anything.
std::string frames_from(Input& input, fuzz::Speaker& speaker) {
  std::string all;
  for (size_t n = input.take<uint8_t>() % (kMostFrames + 1); n > 0; --n) {
    const auto kind = input.take<uint8_t>();
    const auto usual = static_cast<WatchWord>(input.take<uint8_t>() % 7);
    all += (kind & 0x80) != 0 ? input.take_text(input.take<uint16_t>() % 1024)
                              : speaker.seal(frame_from(input, kind, usual));
  }
  return all;
}

// The run's secret, unless the input changes it.
Secret secret_from(Input& input, Secret::Bytes bytes) {
  bytes[0] ^= input.take<std::byte>();
  return Secret(bytes);
}

const Greeting& usual_greeting() {
  static const Greeting greeting = make_greeting(Purpose::heartbeat);
  return greeting;
}

std::string words_from(Input& input, const Secret::Bytes& secret) {
  const auto kind = input.take<uint8_t>();
  if ((kind & 0x80) != 0) return input.take_text(input.take<uint16_t>() % 1024);
  const Greeting greeting = fuzz::greeting_from(input, Purpose::heartbeat);
  const Secret theirs = secret_from(input, secret);
  fuzz::Speaker caller(theirs, Side::caller, usual_greeting(), greeting);
  const std::string hello = caller.seal(frame_from(input, kind, WatchWord::hello));
  return fuzz::bytes_of(greeting) + hello + frames_from(input, caller);
}

// What a watch says of the others.
struct Conclusion {
  std::optional<std::string> failure;
  bool told = false;
  bool operator==(const Conclusion&) const = default;
};

template <typename Work>
Conclusion conclude(const Work& work) {
  try {
    work();
    return {};
  } catch (const ToldByPeer& error) {
    return {error.what(), true};
  } catch (const PeerFailed& error) {
    return {error.what(), false};
  }
}

void be_rank_0(Input& input) {
  std::vector<fuzz::Stranger> guests;
  std::vector<fuzz::Speaker> ranks;
  bool only_strangers = true;
  const auto put_all = [&](std::span<std::byte> bytes, const WhileMeeting&) {
    WatchPlace place;
    std::memcpy(static_cast<void*>(&place), bytes.data(), sizeof(place));
    const Secret secret(place.secret);
    for (size_t n = input.take<uint8_t>() % (kMostStrangers + 1); n > 0; --n) {
      Pieces pieces = fuzz::cut(words_from(input, place.secret), input);
      guests.push_back(fuzz::put_stranger(pieces));
      const std::string said = fuzz::hear(pieces, kWordsBytes);
      if (fuzz::understood(said, secret, usual_greeting(), sizeof(WatchFrame))) only_strangers = false;
    }
    for (int rank = 1; rank < kRanks; ++rank) {
      fuzz::Speaker& speaker = ranks.emplace_back(secret, Side::caller, usual_greeting(), usual_greeting());
      const std::string hello = speaker.seal(frame(WatchWord::hello, rank));
      const std::string beat = speaker.seal(frame(WatchWord::beat, rank));
      guests.push_back(fuzz::put_stranger(
          {fuzz::bytes_of(usual_greeting()) + hello, beat, speaker.seal(frame(WatchWord::goodbye, rank))}));
    }
  };
  const Conclusion conclusion = conclude([&] { Watch(options_of(0), put_all).check(); });
  if (!only_strangers) return;
  require(conclusion == Conclusion());
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::string heard = guests[guests.size() - ranks.size() + i].heard();
    require(heard.starts_with(fuzz::bytes_of(usual_greeting())));
    const auto opened = ranks[i].open(heard.substr(sizeof(Greeting), sizeof(WatchFrame) + kSealBytes));
    require(opened.has_value());
    const auto welcome = fuzz::from_bytes<WatchFrame>(*opened);
    require(welcome.word == WatchWord::welcome && welcome.rank == 0);
  }
}

// What a rank must conclude from what rank 0 says until it ends.
Conclusion right_conclusion(Pieces pieces, fuzz::Speaker& rank, const std::string& host) {
  for (bool complete = false;;) {
    const std::string bytes = fuzz::hear(pieces, sizeof(WatchFrame) + kSealBytes);
    if (bytes.size() < sizeof(WatchFrame) + kSealBytes) return {host + " has died", false};
    const auto opened = rank.open(bytes);
    if (!opened) return {host + ": something else speaks in its connection", false};
    const auto heard = fuzz::from_bytes<WatchFrame>(*opened);
    if (heard.word == WatchWord::goodbye && complete) return {};
    if (heard.word == WatchWord::goodbye) return {host + " has left before all ranks had come", false};
    if (heard.word == WatchWord::complete) complete = true;
    if (heard.word != WatchWord::failure && heard.word != WatchWord::complaint) continue;
    const std::string text = get_text(heard.text);
    const bool own = static_cast<int>(heard.rank) == kOwn;
    return {own ? text + ": this process, which the others have given up" : text, heard.word == WatchWord::complaint};
  }
}

WatchPlace place_from(Input& input) {
  WatchPlace place;
  input.take_bytes(&place.port, sizeof(place.port));
  place.secret = input.take<Secret::Bytes>();
  place.timeout_ms = static_cast<uint32_t>(kTimeout.count());
  input.take_bytes(place.machine, input.take<uint8_t>() % (sizeof(place.machine) + 1));
  input.take_bytes(place.addresses, input.take<uint16_t>() % (sizeof(place.addresses) + 1));
  return place;
}

void be_another(Input& input) {
  WatchPlace place = place_from(input);
  std::vector<fuzz::Stranger> hosts;
  if (input.take<uint8_t>() % 2 == 1) {  // a machine of two addresses, at the first of which somebody else answers
    place.machine[0] = 'a';
    place.addresses[0] = 'b';
    place.machine[1] = place.addresses[1] = '\0';
    const Greeting greeting = fuzz::greeting_from(input, Purpose::heartbeat);
    Secret::Bytes wrong = place.secret;
    wrong[31] ^= std::byte{1};
    fuzz::Speaker speaker(Secret(wrong), Side::host, greeting, usual_greeting());
    const std::string answer = speaker.seal(frame_from(input, input.take<uint8_t>(), WatchWord::welcome));
    hosts.push_back(fuzz::put_stranger(fuzz::cut(fuzz::bytes_of(greeting) + answer, input)));
  }
  fuzz::Speaker speaker(Secret(place.secret), Side::host, usual_greeting(), usual_greeting());
  const std::string greeting = fuzz::bytes_of(usual_greeting()), welcome = frame(WatchWord::welcome, 0);
  Pieces all = {greeting.substr(0, fuzz::kMagicBytes), greeting.substr(fuzz::kMagicBytes), speaker.seal(welcome)};
  const Pieces said = fuzz::cut(frames_from(input, speaker), input);
  all.insert(all.end(), said.begin(), said.end());
  hosts.push_back(fuzz::put_stranger(all));
  fuzz::Speaker rank(Secret(place.secret), Side::caller, usual_greeting(), usual_greeting());
  require(rank.open(all[2]).has_value());
  const Conclusion right = right_conclusion(said, rank, fuzz::from_bytes<WatchFrame>(welcome).who());

  const Conclusion conclusion = conclude([&] {
    const auto share = [&](std::span<std::byte> to, const WhileMeeting&) { std::memcpy(to.data(), &place, to.size()); };
    Watch watch(options_of(kOwn), share);
    const std::string words = hosts.back().heard_to_end().substr(0, kWordsBytes);
    const auto understood = fuzz::understood(words, Secret(place.secret), usual_greeting(), sizeof(WatchFrame));
    require(understood.has_value());
    const auto hello = fuzz::from_bytes<WatchFrame>(*understood);
    require(hello.word == WatchWord::hello && hello.rank == kOwn);
    while (right.failure && !watch.failure()) watch.cause_of("");  // the connection ends just before its thread says so
    watch.check();
  });
  require(conclusion == right);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::draw_alike();
  Input input(data, size);
  (input.take<uint8_t>() & 1) != 0 ? be_rank_0(input) : be_another(input);
  fuzz::send_home();
  return 0;
}
