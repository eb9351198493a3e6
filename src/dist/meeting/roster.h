#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dgc {

// What ranks send each other at a meeting point, over TCP or in files: little-endian structs, as they lie in memory.

inline constexpr uint64_t kMeetingMagic = 0x315445454d434744;  // "DGCMEET1"
inline constexpr uint32_t kMeetingVersion = 4;

enum class Verdict : uint32_t { welcome, version, run, size, blob, rank, taken, failed };

struct Hello {
  uint64_t magic = kMeetingMagic;
  uint32_t version = kMeetingVersion;
  uint32_t rank = 0;
  uint32_t size = 0;
  uint32_t blob_bytes = 0;
  uint64_t run = 0;        // hash of Launch::run
  uint64_t nonce = 0;      // random; the same sender may come again, another one with its rank may not
  char failure[472] = {};  // why the rank does not take part (dist/meeting/fixed_text.h); empty: it does
};
static_assert(sizeof(Hello) == 512);

// Rank 0's answer to a Hello. The blob follows a welcome.
struct Reply {
  uint64_t magic = kMeetingMagic;
  uint32_t version = kMeetingVersion;
  Verdict verdict = Verdict::welcome;
  uint64_t nonce = 0;  // of the Hello that it answers
  uint32_t size = 0;   // number of ranks that rank 0 expects
  uint32_t reserved = 0;
  // With Verdict::failed, which rank failed, and why; with Verdict::run, rank 0's run (dist/meeting/fixed_text.h).
  char text[480] = {};
};
static_assert(sizeof(Reply) == 512);

// Rank 0's list of the ranks that have come or, where rank 0 itself takes no part, that have been told so.
class Roster {
 public:
  Roster(const Hello& own, std::string run);  // run: Launch::run; a rank of another run is told it

  Reply answer(const Hello&);              // remembers the ranks it welcomed, and its last refusal
  void serve(const Hello&, const Reply&);  // to be called once the sender has a reply that is_served()
  bool complete() const { return missing_.empty(); }
  // Another rank's words about its failure; empty: no rank has failed.
  const std::string& failure() const { return failure_; }

  void note_strangers(const std::string& clause) { strangers_ = clause; }

  // "ranks 2, 3 did not come", why the last one was turned away, and what became of strangers.
  std::string absent() const;

 private:
  std::string heard_failure(const Hello&);

  Hello own_;
  std::string run_;
  std::vector<uint64_t> nonces_;  // by rank: of the process that was welcomed last
  std::set<int> missing_;         // ranks that have not come
  std::string last_refusal_, strangers_, failure_;
  std::optional<Hello> heard_from_;  // a rank that has failed; its words become failure_ once it has its answer
  bool told_ = false;                // whether another rank has been answered with them
};

// Whether the reply is no refusal, so that the rank that gets it counts as come.
inline bool is_served(const Reply& reply) {
  return reply.verdict == Verdict::welcome || reply.verdict == Verdict::failed;
}

// Why rank 0 turned `own` away, and what to do about it.
std::string refusal(const Hello& own, const Reply&);

}  // namespace dgc
