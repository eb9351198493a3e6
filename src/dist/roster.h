#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dgc {

// What ranks say to each other at a meeting point, over TCP or in files. Little-endian, as they lie in memory.

inline constexpr uint64_t kMeetingMagic = 0x315445454d434744;  // "DGCMEET1"
inline constexpr uint32_t kMeetingVersion = 2;

enum class Verdict : uint32_t { welcome, version, run, size, config, blob, rank, taken, failed };

struct Hello {
  uint64_t magic = kMeetingMagic;
  uint32_t version = kMeetingVersion;
  uint32_t rank = 0;
  uint32_t size = 0;
  uint32_t blob_bytes = 0;
  uint64_t config = 0;
  uint64_t run = 0;        // hash of what the launcher calls it
  uint64_t nonce = 0;      // of the process, so that it can come again, but no other as the same rank
  char failure[464] = {};  // why it does not take part, in a text (dist/fixed_text.h); empty: it does
};
static_assert(sizeof(Hello) == 512);

// Followed by the blob when it is a welcome.
struct Reply {
  uint64_t magic = kMeetingMagic;
  uint32_t version = kMeetingVersion;
  Verdict verdict = Verdict::welcome;
  uint64_t nonce = 0;  // of the Hello that it answers
  uint32_t size = 0;   // what rank 0 thinks
  uint32_t reserved = 0;
  char failure[480] = {};  // the text of which rank failed, and why: nobody takes part any more
};
static_assert(sizeof(Reply) == 512);

// Rank 0's list of who has come, and, where rank 0 itself takes no part, of who has been told so.
class Roster {
 public:
  explicit Roster(const Hello& own);

  Reply answer(const Hello&);  // remembers whom it welcomed, and the last one it did not
  void serve(const Hello&);    // who was neither refused nor lost has received the answer
  bool complete() const { return missing_ == 0; }
  // What another rank has said of its failure; empty: none did.
  const std::string& failure() const { return failure_; }

  // "ranks 2, 3 did not come", and why the last one was turned away.
  std::string absent() const;

 private:
  Hello own_;
  struct Seat {
    bool served = false;
    uint64_t nonce = 0;
  };
  std::vector<Seat> seats_;
  size_t missing_;
  std::string last_refusal_, failure_;
};

// Whether who gets this reply has come as rank 0 expects it.
inline bool is_served(const Reply& reply) {
  return reply.verdict == Verdict::welcome || reply.verdict == Verdict::failed;
}

// Why rank 0 turned `own` away, and what to do about it.
std::string refusal(const Hello& own, const Reply&);

}  // namespace dgc
