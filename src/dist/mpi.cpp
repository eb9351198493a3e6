// MPI carries bytes between processes here; it sums nothing. Every collective is a set of sends and receives that are
// polled until they are done, so that a wait can end when a rank has failed. Before its data a rank sends the call that
// it makes, and all ranks compare their calls: ranks that do not make the same calls find out instead of hanging.
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <span>
#include <utility>

#include "dist/back_off.h"
#include "dist/launch/launch.h"
#include "dist/mpi_messages.h"
#include "dist/transfers.h"
#include "dist/whole_communicator.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

void check_mpi(int result, const char* call) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw PeerFailed(fmt::format("{} failed: {}", call, text));
}

// Over TCP, Open MPI lets the receiver of a long message say where to put it, and that reply queues behind all data
// that travel the other way: at 100 Mbps it makes a dense step of ResNet-20 take a third longer (bench/slow_links). A
// value that the user has set (mpirun --mca btl_tcp_flags) is kept; other MPIs ignore the variable.
void prefer_sends_over_tcp() { setenv("OMPI_MCA_btl_tcp_flags", "send,inplace", 0); }

// MPI itself, which a process can start once. A session leaves MPI alone where somebody else has started it.
class Session {
 public:
  static std::shared_ptr<Session> join() {
    static std::weak_ptr<Session> running;
    auto session = running.lock();
    if (session == nullptr) running = session = std::make_shared<Session>();
    return session;
  }

  Session() {
    int running = 0, over = 0;
    MPI_Initialized(&running);
    MPI_Finalized(&over);
    DGC_CHECK(over == 0, "MPI starts once in a process, and its last communicator has gone");
    if (running != 0) return;
    prefer_sends_over_tcp();
    // One thread uses MPI at a time, but not always the same one: a communicator goes to the thread that uses it.
    int provided = 0;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    DGC_CHECK(provided >= MPI_THREAD_SERIALIZED, "this MPI cannot be used by several threads in turn");
    finalizes_ = true;
  }
  ~Session() {
    if (finalizes_ && !given_up_) MPI_Finalize();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // A rank that has failed does not call MPI_Finalize, and all other ranks would wait there for it. Nor does it call
  // anything else of MPI once the failed communicator has gone: every call may write to memory that was that one's.
  void give_up() { given_up_ = true; }
  bool given_up() const { return given_up_; }

 private:
  bool finalizes_ = false;
  bool given_up_ = false;
};

constexpr int kCalls = 0, kData = 1, kSizes = 2, kLetters = 3;  // tags

MPI_Request& add(std::vector<MPI_Request>& requests) { return requests.emplace_back(MPI_REQUEST_NULL); }

bool all_done(std::vector<MPI_Request>& requests) {
  int done = 0;
  check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
  return done != 0;
}

// Calls post(pointer, count) for each piece of the memory: MPI counts the bytes of a message with an int.
template <typename Memory, typename Post>
void in_pieces(Memory* memory, size_t bytes, size_t piece_bytes, const Post& post) {
  using Byte = std::conditional_t<std::is_const_v<Memory>, const std::byte, std::byte>;
  for (size_t at = 0; at < bytes; at += piece_bytes) {
    post(static_cast<Byte*>(memory) + at, static_cast<int>(std::min(piece_bytes, bytes - at)));
  }
}

// What travels before a letter. Nothing else says how long the letter is, so a size that was damaged would have the
// receiver wait for ever, or take all memory.
struct LetterSize {
  uint64_t bytes = 0, complement = 0;
  static LetterSize of(uint64_t bytes) { return {bytes, ~bytes}; }
  bool is_whole() const { return bytes == ~complement; }
};

// A letter travels as its size and then its bytes. MPI keeps the order of messages with the same tag.
class MpiMail final : public Mail {
 public:
  // piece_bytes: longer letters travel in pieces. check: throws when a rank has failed.
  MpiMail(int ranks, size_t piece_bytes, std::function<void()> check)
      : piece_bytes_(piece_bytes),
        check_(std::move(check)),
        outgoing_(static_cast<size_t>(ranks)),
        incoming_(static_cast<size_t>(ranks)) {}

  void use(MPI_Comm comm) { comm_ = comm; }
  // Waits until all letters have left. To be called before MPI ends, unless a rank has failed.
  void finish() {
    for (auto& letters : outgoing_) {
      for (Outgoing& letter : letters) {
        MPI_Waitall(static_cast<int>(letter.requests.size()), letter.requests.data(), MPI_STATUSES_IGNORE);
      }
    }
  }

  void post(int to, Letter letter) override {
    check_();
    Outgoing& out = outgoing_[static_cast<size_t>(to)].emplace_back(
        Outgoing{LetterSize::of(letter->size()), std::move(letter), {}});
    check_mpi(MPI_Isend(&out.size, sizeof(out.size), MPI_BYTE, to, kSizes, comm_, &add(out.requests)), "MPI_Isend");
    in_pieces(out.letter->data(), out.letter->size(), piece_bytes_, [&](const std::byte* piece, int bytes) {
      check_mpi(MPI_Isend(piece, bytes, MPI_BYTE, to, kLetters, comm_, &add(out.requests)), "MPI_Isend");
    });
  }

  std::optional<std::vector<std::byte>> take(int from) override {
    check_();
    drop_sent(from);
    Incoming& in = incoming_[static_cast<size_t>(from)];
    if (!in.under_way && !begin(from, in)) return std::nullopt;
    if (!all_done(in.requests)) return std::nullopt;
    in.under_way = false;
    in.requests.clear();
    return std::move(in.letter);
  }

  size_t unsent(int to) override {
    drop_sent(to);
    size_t bytes = 0;
    for (const Outgoing& letter : outgoing_[static_cast<size_t>(to)]) bytes += letter.letter->size();
    return bytes;
  }

 private:
  struct Outgoing {  // MPI reads the members until the requests are done
    LetterSize size;
    Letter letter;
    std::vector<MPI_Request> requests;
  };
  struct Incoming {
    bool under_way = false;
    std::vector<std::byte> letter;
    std::vector<MPI_Request> requests;
  };

  // Letters to one rank leave in their order. Each call of MPI sends on what is under way to all ranks, so that the
  // letters to others need no look here.
  void drop_sent(int to) {
    auto& letters = outgoing_[static_cast<size_t>(to)];
    while (!letters.empty() && all_done(letters.front().requests)) letters.pop_front();
  }

  // False: no letter is there to be received.
  bool begin(int from, Incoming& in) const {
    int there = 0;
    check_mpi(MPI_Iprobe(from, kSizes, comm_, &there, MPI_STATUS_IGNORE), "MPI_Iprobe");
    if (there == 0) return false;
    LetterSize size;
    check_mpi(MPI_Recv(&size, sizeof(size), MPI_BYTE, from, kSizes, comm_, MPI_STATUS_IGNORE), "MPI_Recv");
    if (!size.is_whole()) throw PeerFailed(fmt::format("the size of a letter of rank {} is damaged", from));
    const uint64_t bytes = size.bytes;
    in.letter.resize(bytes);
    in.under_way = true;
    in_pieces(in.letter.data(), bytes, piece_bytes_, [&](std::byte* piece, int count) {
      check_mpi(MPI_Irecv(piece, count, MPI_BYTE, from, kLetters, comm_, &add(in.requests)), "MPI_Irecv");
    });
    return true;
  }

  size_t piece_bytes_;
  std::function<void()> check_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<std::deque<Outgoing>> outgoing_;  // by receiver; a deque leaves its entries where they are
  std::vector<Incoming> incoming_;              // by sender
};

class MpiCommunicator final : public WholeCommunicator {
 public:
  MpiCommunicator(const Launch& launch, MpiOptions options)
      : session_(Session::join()),
        options_(std::move(options)),
        rank_(launch.rank),
        size_(launch.size),
        calls_(static_cast<size_t>(launch.size)),
        mail_(launch.size, options_.piece_bytes, [this] { check(); }) {
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != rank_ || size != size_) {
      throw_user_error(
          "{} says that this is rank {} of {}, but MPI that it is rank {} of {}: start all ranks with one mpirun, or "
          "with srun --mpi=pmix",
          launch.launcher, rank_, size_, rank, size);
    }
    for (MPI_Comm* comm : {&data_, &notices_}) {
      check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, comm), "MPI_Comm_dup");
      MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
    }
    mail_.use(data_);
    telling_.reserve(calls_.size());
    check_mpi(MPI_Irecv(&heard_, sizeof(heard_), MPI_BYTE, MPI_ANY_SOURCE, 0, notices_, &listening_), "MPI_Irecv");
  }

  ~MpiCommunicator() override {
    if (session_->given_up()) return;
    mail_.finish();
    MPI_Cancel(&listening_);
    MPI_Wait(&listening_, MPI_STATUS_IGNORE);
    MPI_Comm_free(&data_);
    MPI_Comm_free(&notices_);
  }

  std::string name() const override { return "mpi"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool between_processes() const override { return true; }
  bool recordable() const override { return false; }

  void all_gather_among(const Ranks& ranks, Device& device, const void* mine, void* all, size_t bytes) override {
    const auto count = static_cast<size_t>(ranks.size);
    const Call call{.kind = Call::Kind::all_gather, .size = bytes};
    if (device.on_host()) return exchange(ranks, call, all_gather_transfers(ranks, mine, all, bytes));
    std::byte* const from = stage_.take(device, bytes * (count + 1));
    std::byte* const to = from + bytes;
    device.copy_out(from, mine, bytes);
    exchange(ranks, call, all_gather_transfers(ranks, from, to, bytes));
    device.copy_in(all, to, bytes * count);
  }

  void gather_shards_among(const Ranks& ranks, Device& device, std::span<const float* const> local_workers, float* mine,
                           size_t n) override {
    DGC_CHECK(!local_workers.empty(), "a rank without workers");
    const int place = place_among(ranks, rank_);
    const size_t workers = local_workers.size();
    const size_t result = workers * static_cast<size_t>(ranks.size) * shard_size(n, ranks.size);
    const Call call{.kind = Call::Kind::gather_shards, .workers = workers, .size = n};
    if (device.on_host()) return exchange(ranks, call, shard_transfers(place, ranks, local_workers, mine, n));
    auto* const to = reinterpret_cast<float*>(stage_.take(device, (result + workers * n) * sizeof(float)));
    std::vector<const float*> from;
    for (const float* worker : local_workers) {
      float* const copy = to + result + from.size() * n;
      device.copy_out(copy, worker, n * sizeof(float));
      from.push_back(copy);
    }
    exchange(ranks, call, shard_transfers(place, ranks, from, to, n));
    device.copy_in(mine, to, result * sizeof(float));
  }

  void barrier_among(const Ranks& ranks, Device& device) override {
    device.synchronize();
    exchange(ranks, {.kind = Call::Kind::barrier}, {});
  }

  Mail* mail() override { return &mail_; }

  void check() override {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    int heard = 0;
    MPI_Status status;
    check_mpi(MPI_Test(&listening_, &heard, &status), "MPI_Test");
    try {
      if (heard != 0)
        throw ToldByPeer(fmt::format("rank {} failed: {}", status.MPI_SOURCE, heard_.reason.data()), false);
      options_.while_waiting();
    } catch (const ToldByPeer& told) {
      fail(told);
      throw;
    }
  }

  void abort(const std::string& reason) noexcept override {
    const bool told = session_->given_up();  // by the communicator that has failed
    if (failure_ != nullptr) return;
    fail(PeerFailed(fmt::format("rank {} failed: {}", rank_, reason)));
    if (told) return;
    reason.copy(told_.reason.data(), told_.reason.size() - 1);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      MPI_Isend(&told_, sizeof(told_), MPI_BYTE, peer, 0, notices_, &telling_.emplace_back(MPI_REQUEST_NULL));
    }
    // A rank that does not listen must not keep this one from ending.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    const BackOff back_off;
    int done = 0;
    while (done == 0 && std::chrono::steady_clock::now() < deadline) {
      if (MPI_Testall(static_cast<int>(telling_.size()), telling_.data(), &done, MPI_STATUSES_IGNORE) != 0) return;
      back_off.pause();
    }
  }

 private:
  void exchange(const Ranks& ranks, Call own, const std::vector<Transfer>& transfers) {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    own.sequence = sequence_++;
    own.ranks = static_cast<uint32_t>(ranks.size);
    try {
      start(ranks, own, transfers);
      wait_for(calls_under_way_);
      compare(ranks, own);
      wait_for(under_way_);
    } catch (const ToldByPeer&) {
      throw;
    } catch (const std::exception& error) {
      abort(error.what());  // called while the memory that MPI may still write to is there
      throw;
    }
  }

  void start(const Ranks& ranks, const Call& own, const std::vector<Transfer>& transfers) {
    calls_under_way_.clear();
    under_way_.clear();
    calls_[static_cast<size_t>(rank_)] = own;
    const int place = place_among(ranks, rank_);
    const size_t each = transfers.size() / static_cast<size_t>(ranks.size);
    for (int i = 0; i < ranks.size; ++i) {
      const int next = (place + i) % ranks.size;  // each rank begins with itself, so all begin differently
      const int peer = ranks.at(next);
      if (peer != rank_) start_with(peer);
      for (const Transfer& t : std::span(transfers).subspan(static_cast<size_t>(next) * each, each)) {
        if (peer != rank_) start(t);
        if (peer == rank_ && t.in > 0) std::memcpy(t.to, t.from, t.in);
      }
    }
  }

  void start_with(int peer) {
    const Call& own = calls_[static_cast<size_t>(rank_)];
    Call& theirs = calls_[static_cast<size_t>(peer)];
    check_mpi(MPI_Irecv(&theirs, sizeof(Call), MPI_BYTE, peer, kCalls, data_, &add(calls_under_way_)), "MPI_Irecv");
    check_mpi(MPI_Isend(&own, sizeof(Call), MPI_BYTE, peer, kCalls, data_, &add(under_way_)), "MPI_Isend");
  }

  void start(const Transfer& t) {
    in_pieces(t.to, t.in, options_.piece_bytes, [&](std::byte* piece, int bytes) {
      check_mpi(MPI_Irecv(piece, bytes, MPI_BYTE, t.peer, kData, data_, &add(under_way_)), "MPI_Irecv");
    });
    in_pieces(t.from, t.out, options_.piece_bytes, [&](const std::byte* piece, int bytes) {
      check_mpi(MPI_Isend(piece, bytes, MPI_BYTE, t.peer, kData, data_, &add(under_way_)), "MPI_Isend");
    });
  }

  void wait_for(std::vector<MPI_Request>& requests) {
    const BackOff back_off;
    while (!all_done(requests)) {
      check();
      back_off.pause();
    }
  }

  void compare(const Ranks& ranks, const Call& own) const {
    for (int i = 0; i < ranks.size; ++i) {
      const Call& theirs = calls_[static_cast<size_t>(ranks.at(i))];
      if (theirs == own) continue;
      throw InternalError(
          fmt::format("rank {} makes {}, but rank {} makes {}", rank_, own.text(), ranks.at(i), theirs.text()));
    }
  }

  template <typename Error>
  void fail(const Error& error) {
    failure_ = std::make_exception_ptr(error);
    session_->give_up();
  }

  std::shared_ptr<Session> session_;
  MpiOptions options_;
  int rank_, size_;
  MPI_Comm data_ = MPI_COMM_NULL, notices_ = MPI_COMM_NULL;
  MPI_Request listening_ = MPI_REQUEST_NULL;
  Notice heard_, told_;
  std::vector<Call> calls_;  // latest call of each rank
  uint64_t sequence_ = 0;
  std::vector<MPI_Request> telling_, calls_under_way_, under_way_;
  HostStage stage_;
  std::exception_ptr failure_;
  MpiMail mail_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const Launch& launch, MpiOptions options) {
  return std::make_unique<MpiCommunicator>(launch, std::move(options));
}

std::string mpi_description() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace dgc
