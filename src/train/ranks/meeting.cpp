#include "train/ranks/meeting.h"

#include <spdlog/spdlog.h>

#include "dist/meeting/watch_link.h"
#include "train/ranks/failure.h"
#include "train/ranks/interrupt.h"

namespace dgc {
namespace {

// The error in the words of another rank that failed, or behind this rank's name.
std::string reason_of(const Launch& launch, const std::exception& error) {
  if (dynamic_cast<const PeerFailed*>(&error) != nullptr) return error.what();
  const WatchFrame own = watch_frame_of_this_process(WatchWord::hello, launch.rank, launch.size);
  return fmt::format("{}: {}", own.who(), complaint(error).text);
}

}  // namespace

void Patience::operator()(const std::string& waiting) {
  if (interrupted()) {
    spdlog::info("stopped by a signal before the ranks had met; there was nothing to save");
    throw Interrupted();
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - told_ < every_) return;
  spdlog::info("{}", waiting);
  told_ = now;
}

void or_decline(const Launch& launch, const Communicator& peers, const RendezvousOptions& meeting,
                const std::function<void()>& work) {
  const bool meets = launch.size > 1 && peers.size() == 1 && launch.meeting.is_set();
  try {
    work();
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    if (!meets || meeting.timeout == std::chrono::milliseconds(0)) throw;
    const InterruptGuard guard;  // a signal ends the wait for the other ranks, and this rank still exits with the error
    const Complaint c = complaint(error);
    const bool told = dynamic_cast<const ToldByPeer*>(&error) != nullptr;
    spdlog::log(told ? spdlog::level::debug : spdlog::level::err, "rank {}: {}", launch.rank, c.text);
    RendezvousOptions options = meeting;
    options.while_waiting = Patience(std::chrono::seconds(5));
    try {
      decline_meeting(launch, options, reason_of(launch, error));
    } catch (const Interrupted&) {  // whoever ends this rank ends the others too
    }
    if (told) throw;
    throw ToldError(c);
  }
}

}  // namespace dgc
