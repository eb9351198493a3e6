#include "dist/meeting/roster.h"

#include <fmt/core.h>

#include "dist/meeting/fixed_text.h"
#include "dist/meeting/rank_list.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

std::string difference(Verdict verdict) {
  switch (verdict) {
    case Verdict::welcome:
      return "nothing";
    case Verdict::version:
      return "the program's version";
    case Verdict::run:
      return "the run (the launcher's job id)";
    case Verdict::size:
      return "the number of ranks";
    case Verdict::blob:
      return "the build, or in whether exchange.failure_timeout_s is 0";
    case Verdict::rank:
      return "the range of ranks";
    case Verdict::taken:
      return "the process: another one came with this rank";
    case Verdict::failed:
      return "nothing, but it failed";
  }
  return "something unknown";
}

}  // namespace

Roster::Roster(const Hello& own, std::string run) : own_(own), run_(std::move(run)), nonces_(own.size) {
  DGC_CHECK(own.rank == 0 && own.size >= 1, "rank 0 keeps the roster");
  nonces_[0] = own.nonce;
  for (int rank = 1; rank < static_cast<int>(own.size); ++rank) missing_.insert(rank);
}

// The first failure that is known: rank 0's own, or one of which a rank has told. It counts from the moment at which
// the rank has told it, because a rank that comes before that rank has its answer must not be welcomed any more.
std::string Roster::heard_failure(const Hello& hello) {
  if (!get_text(own_.failure).empty()) return get_text(own_.failure);
  // What a killed process has left in a file counts until its rank comes.
  const bool comes = heard_from_ && hello.rank == heard_from_->rank && hello.nonce != heard_from_->nonce;
  if (comes && !told_) heard_from_.reset();
  if (!heard_from_ && !get_text(hello.failure).empty()) heard_from_ = hello;
  if (!heard_from_) return "";
  told_ = told_ || hello.rank != heard_from_->rank;
  return get_text(heard_from_->failure);
}

Reply Roster::answer(const Hello& hello) {
  Reply reply;
  reply.nonce = hello.nonce;
  reply.size = own_.size;
  if (hello.version != own_.version) {
    reply.verdict = Verdict::version;
  } else if (hello.run != own_.run) {
    reply.verdict = Verdict::run;
    set_text(reply.text, run_);
  } else if (hello.size != own_.size) {
    reply.verdict = Verdict::size;
  } else if (hello.rank >= own_.size) {
    reply.verdict = Verdict::rank;
  } else if (const std::string failure = heard_failure(hello); !failure.empty()) {
    reply.verdict = Verdict::failed;
    set_text(reply.text, failure);
    return reply;
  } else if (hello.blob_bytes != own_.blob_bytes) {
    reply.verdict = Verdict::blob;
  } else if (!missing_.contains(static_cast<int>(hello.rank)) && nonces_[hello.rank] != hello.nonce) {
    reply.verdict = Verdict::taken;
  } else {
    nonces_[hello.rank] = hello.nonce;
    return reply;
  }
  last_refusal_ = fmt::format("; rank {} was turned away, as it differs in {}", hello.rank, difference(reply.verdict));
  return reply;
}

void Roster::serve(const Hello& hello, const Reply& reply) {
  if (heard_from_ && hello.rank == heard_from_->rank && reply.verdict == Verdict::failed) {
    failure_ = get_text(reply.text);
    return;
  }
  missing_.erase(static_cast<int>(hello.rank));
}

std::string Roster::absent() const {
  return fmt::format("{} {} did not come{}{}", missing_.size() == 1 ? "rank" : "ranks", rank_list(missing_),
                     last_refusal_, strangers_);
}

std::string refusal(const Hello& own, const Reply& reply) {
  const std::string text = get_text(reply.text);
  const auto because = [&]() -> std::string {
    switch (reply.verdict) {
      case Verdict::welcome:
        return "it is welcome";
      case Verdict::version:
        return "they are different versions of the program; start the same binary everywhere";
      case Verdict::run:
        return fmt::format("that rank belongs to another run{}; wait for it to end or choose another port",
                           text.empty() ? "" : " (" + text + ")");
      case Verdict::size:
        return fmt::format("rank 0 counts {} ranks and this one {}; start all of them with the same size", reply.size,
                           own.size);
      case Verdict::blob:
        return "exchange.failure_timeout_s is 0 for one of them alone, or they are different builds of the program; "
               "start the same binary with the same config and --set everywhere";
      case Verdict::rank:
        return fmt::format("there are only {} ranks; correct this one's rank", reply.size);
      case Verdict::failed:
        return get_text(reply.text);
      case Verdict::taken:
        return "another process came with the same rank; give each process a rank of its own";
    }
    return fmt::format("of reason {}, which this version does not know; start the same binary everywhere",
                       static_cast<uint32_t>(reply.verdict));
  };
  return fmt::format("was turned away by rank 0: {}", because());
}

}  // namespace dgc
