#pragma once

#include <array>
#include <catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "dist/communicator.h"
#include "dist/meeting/rendezvous.h"
#include "dist/meeting/socket.h"
#include "tensor/errors.h"
#include "tests/dist/meeting/free_port.h"
#include "tests/support/new_folder.h"

// Ranks, as threads, that meet at a place and get rank 0's bytes there; or what kept them from it.
namespace dgc::test {

using std::chrono::milliseconds;
using Blob = std::array<std::byte, 128>;

struct Directory {
  Directory() : path(new_folder("dgc_meeting")) {}
  ~Directory() { std::filesystem::remove_all(path); }
  bool empty() const { return std::filesystem::is_empty(path); }
  std::filesystem::path path;
};

inline MeetingPoint tcp(const std::string& host = "127.0.0.1") {
  MeetingPoint point;
  point.host = host;
  point.port = free_port();
  return point;
}

inline MeetingPoint in_files(const Directory& directory) {
  MeetingPoint point;
  point.path = (directory.path / "meet").string();
  return point;
}

inline Launch launch_of(int rank, int size, const MeetingPoint& point) {
  Launch launch;
  launch.rank = rank;
  launch.size = size;
  launch.run = "test 1";
  launch.meeting = point;
  return launch;
}

inline Blob blob_of(int seed) {
  Blob blob;
  for (size_t i = 0; i < blob.size(); ++i) blob[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(seed));
  return blob;
}

inline RendezvousOptions within(milliseconds timeout) {
  RendezvousOptions options;
  options.timeout = timeout;
  return options;
}

inline constexpr milliseconds kLong(20000), kShort(1000);
// Of ranks that wait in vain, and meet others before.
inline constexpr milliseconds kMedium(3000);

// What became of one rank: "" when it got rank 0's blob.
inline std::string outcome(const Launch& launch, const RendezvousOptions& options) {
  Blob blob = launch.rank == 0 ? blob_of(1) : Blob{};
  try {
    share_from_rank0(launch, options, blob);
  } catch (const UserError& error) {
    return error.what();
  } catch (const PeerFailed& error) {
    return std::string("peer: ") + error.what();
  }
  return blob == blob_of(1) ? "" : "wrong bytes";
}

struct Rank {
  Launch launch;
  RendezvousOptions options;
  milliseconds delay{0};
};

// One rank's outcome, in a thread of its own. The rank must outlive it.
inline std::future<std::string> come(const Rank& rank) {
  return std::async(std::launch::async, [&rank] {
    std::this_thread::sleep_for(rank.delay);
    return outcome(rank.launch, rank.options);
  });
}

inline std::vector<std::string> outcomes(const std::vector<Rank>& ranks) {
  std::vector<std::future<std::string>> coming;
  for (const Rank& rank : ranks) coming.push_back(come(rank));
  std::vector<std::string> all;
  for (std::future<std::string>& one : coming) all.push_back(one.get());
  return all;
}

inline std::vector<Rank> ranks_at(const MeetingPoint& point, int size, milliseconds timeout) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back({launch_of(rank, size, point), within(timeout)});
  return ranks;
}

// Whether a name has an address on this machine; says why not.
inline bool have_name(const std::string& name) {
  Trouble trouble;
  const Deadline deadline = std::chrono::steady_clock::now() + kLong;
  if (!look_up({.host = name, .port = 1, .path = {}}, deadline, trouble).empty()) return true;
  WARN("skipped: this machine cannot look up its name " << name << " (" << trouble.text << ")");
  return false;
}

inline const std::vector<std::string> kFine2(2), kFine3(3);

}  // namespace dgc::test
