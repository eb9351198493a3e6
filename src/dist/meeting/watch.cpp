#include "dist/meeting/watch.h"

#include <span>

#include "dist/meeting/watch_thread.h"
#include "dist/peer_failed.h"

namespace dgc {

Watch::Watch(const WatchOptions& options, const ShareFromRank0& share) : options_(options) {
  if (options.size == 1 || options.timeout == std::chrono::milliseconds(0)) return;
  thread_ = std::make_unique<Thread>(options);
  try {
    meet(share);
  } catch (const std::exception& error) {
    fail(error.what());
    throw;
  }
}

void Watch::meet(const ShareFromRank0& share) {
  const WhileMeeting look = [this](const std::string& waiting) { look_around(waiting); };
  WatchPlace place;
  const auto bytes = std::as_writable_bytes(std::span(&place, 1));
  if (options_.rank == 0) {
    place = thread_->listen();
    thread_->start();  // so that a rank that knows the place is let in at once
    share(bytes, look);
  } else {
    share(bytes, look);
    thread_->join(place, look);
    thread_->start();
  }
  thread_->wait_for_all(look);
  check();
}

Watch::~Watch() = default;

std::optional<std::string> Watch::failure() const { return thread_ ? thread_->failure() : std::nullopt; }

void Watch::check() const {
  const auto what = failure();
  if (!what) return;
  if (thread_->told()) throw ToldByPeer(*what, false);
  throw PeerFailed(*what);
}

void Watch::look_around(const std::string& waiting) {
  try {
    options_.while_waiting(waiting);
  } catch (const std::exception& error) {
    fail(error.what());
    throw;
  }
  check();
}

std::string Watch::cause_of(const std::string& symptom) const { return thread_ ? thread_->cause_of(symptom) : symptom; }

void Watch::fail(const std::string& reason) noexcept {
  if (thread_) thread_->fail(reason);
}

}  // namespace dgc
