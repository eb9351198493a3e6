#include "optim/dgc_exchange.h"

namespace dgc {

void DgcExchange::prepare(const DgcLayout& layout) {
  wire_ = &layout.wire;
  const auto local = static_cast<size_t>(context_.local_workers);
  const size_t workers = local * static_cast<size_t>(context_.communicator.size());
  const size_t bytes = wire_->message_bytes() * local;
  if (mine_.bytes() < bytes) {
    mine_ = {};
    all_ = {};
    mine_ = Buffer(context_.backend.device(), bytes);
    all_ = Buffer(context_.backend.device(), wire_->message_bytes() * workers);
  }
  // The gaps between a message's arrays are never written, are part of the checksum, and lie elsewhere in each layout.
  context_.backend.device()->zero(mine_.data(), mine_.bytes());
  payloads_.resize(workers);
}

std::span<std::byte> DgcExchange::message(int local_worker) const {
  auto* first = static_cast<std::byte*>(mine_.data());
  return {first + wire_->message_bytes() * static_cast<size_t>(local_worker), wire_->message_bytes()};
}

std::byte* DgcExchange::payload(int local_worker) const { return message(local_worker).data() + kWireHeaderBytes; }

std::span<const std::byte* const> DgcExchange::run(uint64_t step) {
  const auto first_worker = static_cast<uint32_t>(context_.communicator.rank() * context_.local_workers);
  for (int local = 0; local < context_.local_workers; ++local) {
    seal_message(message(local), *wire_, step, first_worker + static_cast<uint32_t>(local));
  }
  const size_t bytes = wire_->message_bytes();
  const std::span all(static_cast<std::byte*>(all_.data()), bytes * payloads_.size());
  context_.communicator.all_gather({message(0).data(), bytes * static_cast<size_t>(context_.local_workers)}, all);
  for (size_t worker = 0; worker < payloads_.size(); ++worker) {
    payloads_[worker] =
        open_message(all.subspan(bytes * worker, bytes), *wire_, step, static_cast<uint32_t>(worker)).data();
  }
  return payloads_;
}

}  // namespace dgc
