#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dist/launch/secret.h"
#include "dist/meeting/socket.h"

namespace dgc {

// How two processes that connect over TCP find out that both know the run's secret, and keep everybody else out of what
// they say to each other. The host is rank 0, which accepts; the caller is another rank, which connects.
//
//   host -> caller    a greeting: version, purpose, 32 random bytes
//   caller -> host    its own greeting, and right behind it its first sealed frame, which says its rank
//   host -> caller    sealed frames, and so on in both directions
//
// Each direction has a key: HMAC-SHA256 (RFC 2104) of the direction and both greetings under the secret. Frame n of a
// direction, counted from 0, is sealed by ChaCha20-Poly1305 (RFC 8439) under that key with the nonce n. So the first
// frame that opens proves that its sender knows the secret now, and to whom it speaks and for what:
//
// - a recording of an earlier conversation does not open, as the listener's random bytes are new;
// - a frame sent back to its sender does not open, as the other direction has another key;
// - a frame of a rendezvous does not open in a heartbeat's connection, as the greetings say the purpose;
// - a frame that is changed, left out, repeated or put in by another does not open, as its number or its tag is wrong.
//
// What this does not do: it hides neither who talks to whom nor when. Who learns the secret later can open what was
// recorded before. Who can cut a connection can end the run. Every process that knows the secret may claim any rank.
enum class Purpose : uint32_t { rendezvous = 1, heartbeat = 2 };

inline constexpr uint64_t kHandshakeMagic = 0x314f4c4c45434744;  // "DGCELLO1"
inline constexpr uint32_t kHandshakeVersion = 1;

// Little-endian, as it lies in memory. All versions begin with the magic and the version.
struct Greeting {
  uint64_t magic = kHandshakeMagic;
  uint32_t version = kHandshakeVersion;
  Purpose purpose = Purpose::rendezvous;
  std::array<std::byte, 32> nonce{};
};
static_assert(sizeof(Greeting) == 48);

Greeting make_greeting(Purpose);  // with a nonce of its own

// What is wrong with a greeting, the first bytes of which have come; empty: nothing so far.
std::string objection_to(std::span<const std::byte> begun, Purpose);

inline constexpr size_t kSealBytes = 16;  // by which a sealed frame is longer

// The sealed frames of one connection, on one side of it.
class SealedSession {
 public:
  enum class Side { host, caller };
  SealedSession(const Secret&, Side own, const Greeting& host, const Greeting& caller);
  SealedSession(const SealedSession&) = default;
  SealedSession& operator=(const SealedSession&) = default;
  ~SealedSession();

  // The frame as it travels. The same number serves until note_sent(), so of the frames sealed with it one at most may
  // leave this process.
  std::vector<std::byte> seal(std::span<const std::byte> frame) const;
  void note_sent() { ++sent_; }

  // Returns false, and nothing of the frame, where it is not the other side's next one. Nothing opens after that.
  bool open(std::span<const std::byte> sealed, std::span<std::byte> frame);

 private:
  using Key = std::array<unsigned char, 32>;
  Key sends_with_, opens_with_;
  uint64_t sent_ = 0, opened_ = 0;
  bool broken_ = false;  // a frame did not open
};

// The caller's side, up to its first frame. The result is empty, and `trouble` says why, where no dgc answers.
std::optional<SealedSession> introduce(const Socket&, const Secret&, Purpose, std::span<const std::byte> first,
                                       const Wait&, Trouble&);
// Waits for the other side's next frame. The trouble's text is empty when it has come.
Trouble receive_sealed(const Socket&, SealedSession&, std::span<std::byte> frame, const Wait&);

}  // namespace dgc
