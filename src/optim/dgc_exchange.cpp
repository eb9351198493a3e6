#include "optim/dgc_exchange.h"

namespace dgc {

void DgcExchange::prepare(const DgcLayout& layout) {
  message_bytes_ = layout.wire.message_bytes();
  const size_t bytes = message_bytes_ * static_cast<size_t>(context_.local_workers);
  const auto ranks = static_cast<size_t>(context_.communicator.size());
  if (mine_.bytes() < bytes) {
    mine_ = {};
    all_ = {};
    mine_ = Buffer(context_.backend.device(), bytes);
    if (ranks > 1) all_ = Buffer(context_.backend.device(), bytes * ranks);
  }
  // The gaps between a message's arrays are never written, are part of the checksum, and lie elsewhere in each layout.
  context_.backend.device()->zero(mine_.data(), mine_.bytes());
}

std::byte* DgcExchange::message(int local_worker) const {
  return static_cast<std::byte*>(mine_.data()) + message_bytes_ * static_cast<size_t>(local_worker);
}

const std::byte* DgcExchange::run() {
  if (context_.communicator.size() == 1) return message(0);
  context_.communicator.all_gather(*context_.backend.device(), mine_.data(), all_.data(),
                                   message_bytes_ * static_cast<size_t>(context_.local_workers));
  return static_cast<const std::byte*>(all_.data());
}

}  // namespace dgc
