#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dgc {

// What ranks say to each other at a meeting point, over TCP or in files. Little-endian, as they lie in memory.

inline constexpr uint64_t kMeetingMagic = 0x315445454d434744;  // "DGCMEET1"
inline constexpr uint32_t kMeetingVersion = 1;

enum class Verdict : uint32_t { welcome, version, run, size, config, blob, rank, taken };

struct Hello {
  uint64_t magic = kMeetingMagic;
  uint32_t version = kMeetingVersion;
  uint32_t rank = 0;
  uint32_t size = 0;
  uint32_t blob_bytes = 0;
  uint64_t config = 0;
  uint64_t run = 0;    // hash of what the launcher calls it
  uint64_t nonce = 0;  // of the process, so that it can come again, but no other as the same rank
};
static_assert(sizeof(Hello) == 48);

// Followed by the blob when it is a welcome.
struct Reply {
  uint64_t magic = kMeetingMagic;
  uint32_t version = kMeetingVersion;
  Verdict verdict = Verdict::welcome;
  uint64_t nonce = 0;  // of the Hello that it answers
  uint32_t size = 0;   // what rank 0 thinks
  uint32_t reserved = 0;
};
static_assert(sizeof(Reply) == 32);

// Rank 0's list of who has come.
class Roster {
 public:
  explicit Roster(const Hello& own);

  Reply answer(const Hello&);  // remembers whom it welcomed, and the last one it did not
  void serve(uint32_t rank);   // has received the blob
  bool complete() const { return missing_ == 0; }

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
  std::string last_refusal_;
};

// Why rank 0 turned `own` away, and what to do about it.
std::string refusal(const Hello& own, const Reply&);

}  // namespace dgc
