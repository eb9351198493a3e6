#pragma once

#include <optional>
#include <string>

#include "dist/meeting/handshake.h"
#include "tests/fuzz/input.h"

// What is said in a conversation of dist/meeting/handshake.h. Random bytes are all alike here (draw_alike), so that
// strangers can say at once what they would say if they had heard the other side's greeting.
namespace dgc::fuzz {

void draw_alike();  // to be called first

inline constexpr size_t kMagicBytes = sizeof(kHandshakeMagic);

// A greeting that is right but for some parts.
Greeting greeting_from(Input&, Purpose);

// One side of a conversation.
class Speaker {
 public:
  Speaker(const Secret& secret, SealedSession::Side side, const Greeting& host, const Greeting& caller)
      : session_(secret, side, host, caller) {}
  std::string seal(const std::string& frame);
  std::optional<std::string> open(const std::string& sealed);  // nothing: it is not the other side's next frame

 private:
  SealedSession session_;
};

// A caller's greeting and first frame, to a host that greets as all do.
std::string first_words(const Greeting& own, const Secret&, const std::string& frame);
// The frame that a host with this greeting must take from a caller's first words; nothing where it must not.
std::optional<std::string> understood(const std::string& words, const Secret&, const Greeting& host,
                                      size_t frame_bytes);

}  // namespace dgc::fuzz
