#include "dist/watch.h"

#include <span>

#include "dist/communicator.h"
#include "dist/watch_thread.h"

namespace dgc {

Watch::Watch(const WatchOptions& options, const ShareFromRank0& share) {
  if (options.size == 1 || options.timeout == std::chrono::milliseconds(0)) return;
  thread_ = std::make_unique<Thread>(options);
  WatchPlace place;
  const auto bytes = std::as_writable_bytes(std::span(&place, 1));
  if (options.rank == 0) {
    place = thread_->listen();
    thread_->start();  // so that whoever knows the place is let in at once
    share(bytes);
    thread_->wait_for_all();
  } else {
    share(bytes);
    thread_->join(place);
    thread_->start();
  }
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

std::string Watch::cause_of(const std::string& symptom) const { return thread_ ? thread_->cause_of(symptom) : symptom; }

void Watch::fail(const std::string& reason) noexcept {
  if (thread_) thread_->fail(reason);
}

}  // namespace dgc
