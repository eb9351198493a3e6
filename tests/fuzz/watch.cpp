// The heartbeat: what strangers and ranks send to rank 0's watch, and what false ranks 0 and rank 0 send to another's.
// Whoever does not know the run's secret must change nothing. The input: byte 0 bit 0 whether this process is rank 0;
// frames that are right but for some parts, or anything, in pieces.
#include "dist/watch.h"

#include <optional>
#include <vector>

#include "dist/communicator.h"
#include "dist/watch_link.h"
#include "tests/fuzz/support/fake_socket.h"

using namespace dgc;
using fuzz::Input;
using fuzz::Pieces;
using fuzz::require;

namespace {

constexpr int kRanks = 3, kOwn = 2;  // this process, where it is not rank 0
constexpr size_t kMostStrangers = 5, kMostFrames = 5;

WatchOptions options_of(int rank) {
  constexpr std::chrono::minutes kTimeout(10);  // reached only by who hangs
  return {.rank = rank, .size = kRanks, .timeout = kTimeout, .start_timeout = kTimeout};
}

std::string frame(WatchWord word, int rank, uint64_t secret) {
  WatchFrame frame;
  frame.secret = secret;
  frame.word = word;
  frame.rank = static_cast<uint32_t>(rank);
  frame.size = kRanks;
  frame.pid = 77;
  frame.set_text("elsewhere");
  return fuzz::bytes_of(frame);
}

std::string frame_from(Input& input, uint64_t secret, WatchWord first) {
  const auto kind = input.take<uint8_t>();
  if ((kind & 0x80) != 0) return input.take_text(input.take<uint16_t>() % 1024);
  const auto word = (kind & 1) != 0 ? input.take<WatchWord>() : first;
  auto made = fuzz::from_bytes<WatchFrame>(frame(word, input.take<uint8_t>() % (kRanks + 1), secret));
  if ((kind & 2) != 0) made.magic = input.take<uint64_t>();
  if ((kind & 4) != 0) made.secret = input.take<uint64_t>();
  if ((kind & 8) != 0) made.rank = input.take<uint32_t>();
  if ((kind & 16) != 0) made.size = input.take<uint32_t>();
  if ((kind & 32) != 0) made.pid = input.take<uint32_t>();
  if ((kind & 64) != 0) input.take_bytes(made.text, input.take<uint16_t>() % (sizeof(made.text) + 1));
  return fuzz::bytes_of(made);
}

// The first frame begins a conversation.
std::string frames_from(Input& input, uint64_t secret, WatchWord first) {
  std::string all;
  for (size_t n = input.take<uint8_t>() % (kMostFrames + 1); n > 0; --n) {
    const auto later = static_cast<WatchWord>(input.take<uint8_t>() % 7);
    all += frame_from(input, secret, all.empty() ? first : later);
  }
  return all;
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
  bool only_strangers = true;
  const auto put_all = [&](std::span<std::byte> bytes, const WhileMeeting&) {
    WatchPlace place;
    std::memcpy(&place, bytes.data(), sizeof(place));
    for (size_t n = input.take<uint8_t>() % (kMostStrangers + 1); n > 0; --n) {
      Pieces pieces = fuzz::cut(frames_from(input, place.secret, WatchWord::hello), input);
      guests.push_back(fuzz::put_stranger(pieces));
      const auto hello = fuzz::from_bytes<WatchFrame>(fuzz::hear(pieces, sizeof(WatchFrame)));
      if (hello.secret == place.secret) only_strangers = false;
    }
    for (int rank = 1; rank < kRanks; ++rank) {
      guests.push_back(fuzz::put_stranger({frame(WatchWord::hello, rank, place.secret), frame(WatchWord::beat, rank, 0),
                                           frame(WatchWord::goodbye, rank, 0)}));
    }
  };
  const Conclusion conclusion = conclude([&] { Watch(options_of(0), put_all).check(); });
  if (!only_strangers) return;
  require(conclusion == Conclusion());
  for (size_t i = guests.size() - (kRanks - 1); i < guests.size(); ++i) {
    const auto welcome = fuzz::from_bytes<WatchFrame>(guests[i].heard());
    require(welcome.magic == kWatchMagic && welcome.word == WatchWord::welcome && welcome.rank == 0);
  }
}

// What a rank must conclude from what rank 0 says until it ends.
Conclusion right_conclusion(Pieces pieces, const std::string& host) {
  for (bool complete = false;;) {
    const std::string bytes = fuzz::hear(pieces, sizeof(WatchFrame));
    const auto heard = fuzz::from_bytes<WatchFrame>(bytes);
    if (bytes.size() < sizeof(WatchFrame) || heard.magic != kWatchMagic) return {host + " has died", false};
    if (heard.word == WatchWord::goodbye && complete) return {};
    if (heard.word == WatchWord::goodbye) return {host + " has left before all ranks had come", false};
    if (heard.word == WatchWord::complete) complete = true;
    if (heard.word != WatchWord::failure && heard.word != WatchWord::complaint) continue;
    const std::string text(heard.text, strnlen(heard.text, sizeof(heard.text) - 1));
    const bool own = static_cast<int>(heard.rank) == kOwn;
    return {own ? text + ": this process, which the others have given up" : text, heard.word == WatchWord::complaint};
  }
}

WatchPlace place_from(Input& input) {
  WatchPlace place;
  input.take_bytes(&place.port, sizeof(place.port));
  place.secret = input.take<uint64_t>();
  input.take_bytes(place.machine, input.take<uint8_t>() % (sizeof(place.machine) + 1));
  input.take_bytes(place.addresses, input.take<uint16_t>() % (sizeof(place.addresses) + 1));
  return place;
}

void be_another(Input& input) {
  WatchPlace place = place_from(input);
  std::vector<fuzz::Stranger> hosts;
  if (input.take<uint8_t>() % 2 == 1) {  // a machine of two addresses, at the first of which somebody else answers
    place.machine[0] = place.addresses[0] = 'a';
    place.machine[1] = place.addresses[1] = '\0';
    const auto answer = fuzz::from_bytes<WatchFrame>(frame_from(input, ~place.secret, WatchWord::welcome));
    if (answer.secret == place.secret) return;
    hosts.push_back(fuzz::put_stranger(fuzz::cut(fuzz::bytes_of(answer), input)));
  }
  const std::string welcome = frame(WatchWord::welcome, 0, place.secret);
  const Pieces said = fuzz::cut(frames_from(input, place.secret, WatchWord::complete), input);
  Pieces all = said;
  all.insert(all.begin(), welcome);
  hosts.push_back(fuzz::put_stranger(all));
  const Conclusion right = right_conclusion(said, fuzz::from_bytes<WatchFrame>(welcome).who());

  const Conclusion conclusion = conclude([&] {
    const auto share = [&](std::span<std::byte> to, const WhileMeeting&) { std::memcpy(to.data(), &place, to.size()); };
    Watch watch(options_of(kOwn), share);
    const auto hello = fuzz::from_bytes<WatchFrame>(hosts.back().heard_to_end());
    require(hello.magic == kWatchMagic && hello.word == WatchWord::hello && hello.rank == kOwn);
    require(hello.secret == place.secret);
    while (right.failure && !watch.failure()) watch.cause_of("");  // the connection ends just before its thread says so
    watch.check();
  });
  require(conclusion == right);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  (input.take<uint8_t>() & 1) != 0 ? be_rank_0(input) : be_another(input);
  fuzz::send_home();
  return 0;
}
