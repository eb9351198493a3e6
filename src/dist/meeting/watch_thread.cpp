#include "dist/meeting/watch_thread.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dist/meeting/fixed_text.h"
#include "dist/meeting/rank_list.h"
#include "dist/meeting/socket.h"
#include "tensor/errors.h"

namespace dgc {

using std::chrono::milliseconds;

Watch::Thread::Thread(const WatchOptions& options)
    : options_(options),
      own_(watch_frame_of_this_process(WatchWord::hello, options.rank, options.size)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  DGC_CHECK(options.timeout >= milliseconds(100), "a heartbeat's timeout");
  for (int rank = 1; rank < options.size; ++rank) absent_.insert(rank);
}

Watch::Thread::~Thread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
}

WatchPlace Watch::Thread::listen() {
  int port = 0;
  std::string problem;
  std::vector<Socket> listeners = listen_at(options_.listen_at, port, problem);
  if (listeners.empty()) {
    throw_user_error("cannot listen for the heartbeats of the others at any port of this machine: {}", problem);
  }
  const WatchPlace place = watch_place_of_this_machine(port, options_.listen_at, options_.timeout);
  const size_t most = static_cast<size_t>(options_.size) + kMostStrangers;
  reception_.emplace(std::move(listeners), Secret(place.secret),
                     Reception::Rules{Purpose::heartbeat, sizeof(WatchFrame), most});
  return place;
}

void Watch::Thread::join(const WatchPlace& place, const WhileMeeting& look) {
  options_.timeout = milliseconds(place.timeout_ms);
  WatchFrame welcome;
  // Rank 0 listens before it tells the place, so a host that is silent for its share of the timeout is not rank 0's.
  const Wait wait(Clock::now() + options_.timeout,
                  [&] { look(fmt::format("rank {} waits for rank 0's heartbeat", options_.rank)); });
  WatchLink link = join_watch(place, options_.met_at, own_, wait, welcome);
  link.send({});  // a beat, which answers the welcome
  peers_.push_back({0, welcome.who(), std::move(link), Clock::now()});
}

void Watch::Thread::start() {
  thread_ = std::jthread([this] {
    try {
      run();
    } catch (const std::exception& error) {
      adopt(WatchWord::failure, fmt::format("{}: its heartbeat has failed: {}", own_.who(), error.what()),
            options_.rank, nullptr);
    }
  });
}

void Watch::Thread::wait_for_all(const WhileMeeting& look) {
  constexpr milliseconds kBetweenLooks(100);
  // All ranks know rank 0's place now, and join within the timeout or fail. Not all have learnt of it at one time.
  const milliseconds most = 2 * options_.timeout;
  const Clock::time_point deadline = Clock::now() + most;
  while (true) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kBetweenLooks, [&] { return all_here_ || failed_; })) return;
    const std::string whom = options_.rank == 0 ? rank_list(absent_) : "", strangers = strangers_;
    lock.unlock();
    if (options_.rank > 0) {
      look(fmt::format("rank {} has met rank 0 and waits for the other ranks", options_.rank));
    } else if (Clock::now() < deadline) {
      look(fmt::format("rank 0 waits for the heartbeats of ranks {}{}", whom, strangers));
    } else {
      throw_user_error("rank 0 waited {:g} s for the heartbeats of all ranks, but those of {} did not come{}",
                       seconds(most), whom, strangers);
    }
  }
}

std::optional<std::string> Watch::Thread::failure() const {
  if (!failed_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool Watch::Thread::told() const {
  const std::lock_guard lock(mutex_);
  return told_;
}

std::string Watch::Thread::cause_of(const std::string& symptom) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, interval(), [&] { return failed_.load(); });
  return failed_ ? failure_ : symptom;
}

void Watch::Thread::fail(const std::string& reason) noexcept {
  try {
    std::unique_lock lock(mutex_);
    if (failed_ || !thread_.joinable()) return;  // without the thread no other rank has been met that could be told
    failure_ = fmt::format("{}: {}", own_.who(), reason);
    news_ = failure_frame(WatchWord::complaint, failure_, options_.rank);
    untold_ = failed_ = true;
    wake();
    changed_.wait_for(lock, std::chrono::seconds(1), [&] { return !untold_; });
  } catch (const std::exception&) {  // then the others learn that this process ends
  }
}

void Watch::Thread::wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void Watch::Thread::run() {
  Clock::time_point last = Clock::now(), next_beat = last;
  for (bool stop = false; !stop;) {
    wait_until(next_beat);
    const Clock::time_point now = Clock::now();
    forgive(now - last);
    last = now;
    {
      std::unique_lock lock(mutex_);
      stop = stop_;
      if (untold_) {
        tell_all(news_);
        untold_ = false;
        changed_.notify_all();
      }
    }
    receive_guests(now);
    receive_from_peers(now);
    if (now >= next_beat) {
      tell_all({});
      next_beat = now + interval();
    }
    judge(now);
    // Ranks that come are let in at once, and a rank that leaves says goodbye at once.
    if (!reception_ && !stop) rest_until(std::min(next_beat, now + rest()));
  }
  part();
}

// A look finds a few of many ranks, and turns to those alone.
void Watch::Thread::wait_until(Clock::time_point time) {
  std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
  if (reception_) reception_->add_to(polled);
  for (const Guest& guest : guests_) polled.push_back({guest.link.fd(), POLLIN, 0});
  const size_t first_peer = polled.size();
  for (const Peer& peer : peers_) polled.push_back({peer.link ? peer.link.fd() : -1, POLLIN, 0});
  poll(polled.data(), polled.size(), milliseconds_until(time));
  for (size_t i = 0; i < peers_.size(); ++i) peers_[i].has_spoken = polled[first_peer + i].revents != 0;
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof(count));
}

// What this process says itself cuts the rest short.
void Watch::Thread::rest_until(Clock::time_point time) const {
  pollfd woken{wake_.get(), POLLIN, 0};
  poll(&woken, 1, milliseconds_until(time));
}

// A process that was stopped or starved knows nothing of how the other ranks did meanwhile, so it does not blame them
// for their silence. If they have given it up, it will hear so. If a batch system stopped all ranks, all go on.
void Watch::Thread::forgive(Clock::duration stopped) {
  if (stopped < silence() / 2) return;
  for (Peer& peer : peers_) peer.heard += stopped;
}

void Watch::Thread::receive_guests(Clock::time_point now) {
  if (!reception_) return;
  std::erase_if(guests_, [&](Guest& guest) { return !hear_out(guest, now); });
  for (Reception::Caller& caller : reception_->receive()) welcome(std::move(caller));
  {
    const std::lock_guard lock(mutex_);
    strangers_ = reception_->strangers();
  }
  if (failed_ || lacks_peers()) return;
  guests_.clear();
  reception_.reset();
  WatchFrame complete;
  complete.word = WatchWord::complete;
  tell_all(complete);
  note_complete();
}

// A rank that is not expected, as another process has come with its number, is hung up on. One that comes after a
// failure learns of it at once.
void Watch::Thread::welcome(Reception::Caller caller) {
  WatchFrame hello;
  std::memcpy(&hello, caller.first.data(), sizeof(hello));
  {
    const std::lock_guard lock(mutex_);
    const bool expected =
        hello.word == WatchWord::hello && hello.size == own_.size && absent_.contains(static_cast<int>(hello.rank));
    if (!expected) return;
  }
  guests_.push_back({hello, WatchLink(std::move(caller.socket), caller.session)});
  WatchFrame welcome = own_;
  welcome.word = WatchWord::welcome;
  guests_.back().link.send(welcome);
  const std::lock_guard lock(mutex_);
  if (failed_) guests_.back().link.send(news_);
}

void Watch::Thread::note_complete() {
  const std::lock_guard lock(mutex_);
  all_here_ = true;
  changed_.notify_all();
}

// Returns false when the conversation with the guest is over: the guest is a peer now, or will never be one.
bool Watch::Thread::hear_out(Guest& guest, Clock::time_point now) {
  WatchFrame frame;
  const WatchLink::Heard heard = guest.link.receive(frame);
  if (heard != WatchLink::Heard::frame) return heard == WatchLink::Heard::nothing;
  const std::lock_guard lock(mutex_);
  const int rank = static_cast<int>(guest.hello.rank);
  if (absent_.erase(rank) == 1) peers_.push_back({rank, guest.hello.who(), std::move(guest.link), now});
  changed_.notify_all();
  return false;
}

// A goodbye of rank 0 before all ranks have come is a failure, also where nothing has come of why rank 0 leaves.
void Watch::Thread::note_goodbye(const Peer& peer) {
  {
    const std::lock_guard lock(mutex_);
    if (peer.rank > 0 || all_here_) return;
  }
  adopt(WatchWord::failure, peer.who + " has left before all ranks had come", peer.rank, nullptr);
}

void Watch::Thread::receive_from_peers(Clock::time_point now) {
  for (Peer& peer : peers_) {
    WatchFrame frame;
    while (peer.has_spoken && peer.link) {
      const WatchLink::Heard heard = peer.link.receive(frame);
      if (heard == WatchLink::Heard::nothing) break;
      peer.heard = now;
      if (heard == WatchLink::Heard::end) {
        peer.link.close();
        adopt(WatchWord::failure, peer.who + " has died", peer.rank, nullptr);
      } else if (heard == WatchLink::Heard::forgery) {
        peer.link.close();
        adopt(WatchWord::failure, peer.who + ": something else speaks in its connection", peer.rank, nullptr);
      } else if (frame.word == WatchWord::goodbye) {
        peer.link.close();
        note_goodbye(peer);
      } else if (frame.word == WatchWord::complete) {
        note_complete();
      } else if (frame.word == WatchWord::failure || frame.word == WatchWord::complaint) {
        adopt(frame.word, get_text(frame.text), static_cast<int>(frame.rank), &peer);
      }
    }
  }
}

void Watch::Thread::judge(Clock::time_point now) {
  for (const Peer& peer : peers_) {
    if (!peer.link || now - peer.heard < silence()) continue;
    adopt(WatchWord::failure, fmt::format("{} has not answered for {:g} s", peer.who, seconds(silence())), peer.rank,
          nullptr);
  }
}

// Takes the first failure as the run's. Later ones follow from it, and are dropped.
void Watch::Thread::adopt(WatchWord word, const std::string& sentence, int about, const Peer* source) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    failure_ = about == options_.rank ? sentence + ": this process, which the others have given up" : sentence;
    told_ = word == WatchWord::complaint;
    news_ = failure_frame(word, sentence, about);
    failed_ = true;
    changed_.notify_all();
  }
  tell_all(news_, source);
}

WatchFrame Watch::Thread::failure_frame(WatchWord word, const std::string& sentence, int about) const {
  WatchFrame frame;
  frame.word = word;
  frame.rank = static_cast<uint32_t>(about);
  set_text(frame.text, sentence);
  return frame;
}

void Watch::Thread::tell_all(const WatchFrame& frame, const Peer* but) {
  for (Peer& peer : peers_) {
    if (&peer != but) peer.link.send(frame);
  }
  for (Guest& guest : guests_) guest.link.send(frame);
}

bool Watch::Thread::lacks_peers() const { return peers_.size() + 1 < static_cast<size_t>(options_.size); }

// Closing a connection that holds unread bytes may destroy the goodbye just sent, so a link stays open until its peer
// has said goodbye or closed it. At the end of a good run every peer does so, however slow its machine; after a failure
// some may never, so the wait is short. Until then rank 0 lets in the ranks that it lacks, to tell them of the failure,
// as they may know its place already.
void Watch::Thread::part() {
  WatchFrame goodbye;
  goodbye.word = WatchWord::goodbye;
  tell_all(goodbye);
  const Clock::time_point deadline = Clock::now() + (failed_ ? interval() : silence());
  const auto open = [&] { return std::ranges::any_of(peers_, [](const Peer& peer) { return bool{peer.link}; }); };
  while ((open() || (reception_ && lacks_peers())) && Clock::now() < deadline) {
    wait_until(deadline);
    receive_guests(Clock::now());
    for (Peer& peer : peers_) {
      WatchFrame frame;
      while (peer.link) {
        const WatchLink::Heard heard = peer.link.receive(frame);
        if (heard == WatchLink::Heard::nothing) break;
        if (heard != WatchLink::Heard::frame || frame.word == WatchWord::goodbye) peer.link.close();
      }
    }
  }
}

}  // namespace dgc
