#include "dist/meeting/rendezvous.h"

#include <xxhash.h>

#include <random>

#include "dist/meeting/fixed_text.h"
#include "dist/meeting/interfaces.h"
#include "dist/meeting/rendezvous_ways.h"
#include "dist/meeting/socket.h"
#include "dist/peer_failed.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

uint64_t random_number() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

Hello hello_of(const Launch& launch, size_t blob_bytes) {
  DGC_CHECK(launch.rank >= 0 && launch.rank < launch.size, "rank and size");
  Hello hello;
  hello.rank = static_cast<uint32_t>(launch.rank);
  hello.size = static_cast<uint32_t>(launch.size);
  hello.blob_bytes = static_cast<uint32_t>(blob_bytes);
  hello.run = XXH3_64bits(launch.run.data(), launch.run.size());
  hello.nonce = random_number();
  return hello;
}

void meet(const Launch& launch, const RendezvousOptions& options, const Hello& hello, std::span<std::byte> blob) {
  const Meeting meeting{launch.meeting, launch.secret, launch.run,
                        hello,          options,       std::chrono::steady_clock::now() + options.timeout};
  if (launch.meeting.is_file()) {
    launch.rank == 0 ? host_over_files(meeting, blob) : join_over_files(meeting, blob);
  } else {
    launch.rank == 0 ? host_over_tcp(meeting, blob) : join_over_tcp(meeting, blob);
  }
}

std::string purpose(const Meeting& meeting, const char* for_whom, const char* whom_to_tell) {
  if (get_text(meeting.hello.failure).empty()) return for_whom;
  return fmt::format(" to tell {} what failed,", whom_to_tell);
}

// One that is not there bounds nothing, and is what the other ranks have to learn of.
bool is_interface(const std::string& name) try {
  return !addresses_of_interface(name, own_addresses()).empty();
} catch (const UserError&) {
  return false;
}

}  // namespace

void look_around(const Meeting& meeting, const Roster& roster) {
  meeting.options.while_waiting(fmt::format("rank 0 waits{} at {}: so far {}", purpose(meeting, "", "the others"),
                                            meeting.point.url(), roster.absent()));
}

void look_around(const Meeting& meeting, const std::string& problem) {
  meeting.options.while_waiting(fmt::format(
      "rank {} waits{} at {}{}", meeting.hello.rank, purpose(meeting, " for rank 0", "rank 0"), meeting.point.url(),
      problem.empty() ? "" : fmt::format(", which does not answer yet ({})", problem)));
}

void throw_absent(const Meeting& meeting, const Roster& roster) {
  throw_user_error("rank 0 waited {:g} s at {}, but {}; start all {} ranks, and check that each can reach this place",
                   seconds(meeting.options.timeout), meeting.point.url(), roster.absent(), meeting.hello.size);
}

void throw_no_host(const Meeting& meeting, const std::string& problem) {
  throw_user_error(
      "rank {} of {} did not find rank 0 at {} within {:g} s ({}); check that rank 0 runs and that all ranks are given "
      "this place by {}",
      meeting.hello.rank, meeting.hello.size, meeting.point.url(), seconds(meeting.options.timeout), problem,
      meeting.point.variable);
}

void throw_unwelcome(const Meeting& meeting, const Reply& reply) {
  if (reply.verdict == Verdict::failed) throw ToldByPeer(get_text(reply.text), false);
  throw_user_error("rank {} of {} {} (at {})", meeting.hello.rank, meeting.hello.size, refusal(meeting.hello, reply),
                   meeting.point.url());
}

void share_from_rank0(const Launch& launch, const RendezvousOptions& options, std::span<std::byte> blob) {
  constexpr size_t kMostBytes = 4096;  // fits the buffers of any socket
  DGC_CHECK(blob.size() <= kMostBytes, "a rendezvous is for small things");
  if (launch.size == 1) return;
  meet(launch, options, hello_of(launch, blob.size()), blob);
}

void decline_meeting(const Launch& launch, const RendezvousOptions& options, const std::string& reason) {
  if (launch.size == 1) return;
  Hello hello = hello_of(launch, 0);
  set_text(hello.failure, reason);
  RendezvousOptions reachable = options;
  if (!options.interface.empty() && !is_interface(options.interface)) reachable.interface.clear();
  try {
    meet(launch, reachable, hello, {});
  } catch (const UserError&) {   // no other rank is there to be told
  } catch (const PeerFailed&) {  // the other ranks know of a failure already
  }
}

}  // namespace dgc
