#include "dist/rendezvous.h"

#include <xxhash.h>

#include <random>

#include "dist/rendezvous_ways.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

double seconds(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

uint64_t random_number() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

void throw_absent(const Meeting& meeting, const Roster& roster) {
  throw_user_error("rank 0 waited {:g} s at {}, but {}; start all {} ranks, and check that each can reach this place",
                   seconds(meeting.timeout), meeting.point.url(), roster.absent(), meeting.hello.size);
}

void throw_no_host(const Meeting& meeting, const std::string& problem) {
  throw_user_error(
      "rank {} of {} did not find rank 0 at {} within {:g} s ({}); check that rank 0 runs and that all ranks are given "
      "this place",
      meeting.hello.rank, meeting.hello.size, meeting.point.url(), seconds(meeting.timeout), problem);
}

void throw_refused(const Meeting& meeting, const Reply& reply) {
  throw_user_error("rank {} of {} {} (at {})", meeting.hello.rank, meeting.hello.size, refusal(meeting.hello, reply),
                   meeting.point.url());
}

void share_from_rank0(const Launch& launch, const RendezvousOptions& options, std::span<std::byte> blob) {
  constexpr size_t kMostBytes = 4096;  // fits the buffers of any socket
  DGC_CHECK(blob.size() <= kMostBytes, "a rendezvous is for small things");
  DGC_CHECK(launch.rank >= 0 && launch.rank < launch.size, "rank and size");
  if (launch.size == 1) return;

  Hello hello;
  hello.rank = static_cast<uint32_t>(launch.rank);
  hello.size = static_cast<uint32_t>(launch.size);
  hello.blob_bytes = static_cast<uint32_t>(blob.size());
  hello.config = options.config;
  hello.run = XXH3_64bits(launch.run.data(), launch.run.size());
  hello.nonce = random_number();
  const Meeting meeting{launch.meeting, hello, options.timeout, std::chrono::steady_clock::now() + options.timeout};
  if (launch.meeting.is_file()) {
    launch.rank == 0 ? host_over_files(meeting, blob) : join_over_files(meeting, blob);
  } else {
    launch.rank == 0 ? host_over_tcp(meeting, blob) : join_over_tcp(meeting, blob);
  }
}

}  // namespace dgc
