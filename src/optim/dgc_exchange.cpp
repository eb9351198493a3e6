#include "optim/dgc_exchange.h"

namespace dgc {

void DgcExchange::prepare(const DgcLayout& layout) {
  is_coded_ = layout.is_coded();
  const bool travel = layout.transport == Transport::sparse && !layout.split;
  make_room(canonical_, layout.canonical.message_bytes(), travel);
  if (is_coded_) make_room(coded_, layout.wire.message_bytes(), travel);
}

void DgcExchange::make_room(Messages& messages, size_t bytes, bool travel) const {
  messages.bytes = bytes;
  const auto ranks = static_cast<size_t>(context_.communicator.size());
  const size_t mine = bytes * static_cast<size_t>(context_.local_workers);
  const size_t all = ranks > 1 && travel ? mine * ranks : 0;
  const auto grow = [&](Buffer& buffer, size_t needed) {
    if (buffer.bytes() >= needed) return;
    buffer = Buffer();  // first: both at once might not fit
    buffer = Buffer(context_.backend.device(), needed);
  };
  grow(messages.mine, mine);
  grow(messages.all, all);
  // The gaps between a message's arrays are never written, are part of the checksum, and lie elsewhere in each layout.
  context_.backend.device()->zero(messages.mine.data(), messages.mine.bytes());
}

std::byte* DgcExchange::message(int local_worker) const {
  return static_cast<std::byte*>(canonical_.mine.data()) + canonical_.bytes * static_cast<size_t>(local_worker);
}

std::byte* DgcExchange::coded(int local_worker) const {
  return static_cast<std::byte*>(coded_.mine.data()) + coded_.bytes * static_cast<size_t>(local_worker);
}

const std::byte* DgcExchange::gather(const Messages& messages) const {
  context_.communicator.all_gather(*context_.backend.device(), messages.mine.data(), messages.all.data(),
                                   messages.bytes * static_cast<size_t>(context_.local_workers));
  return static_cast<const std::byte*>(messages.all.data());
}

const std::byte* DgcExchange::run(const DgcTables& tables, const StepControl* control) {
  if (context_.communicator.size() == 1)
    return message(0);  // encoding has rounded it: what would come back is the same
  if (!is_coded_) return gather(canonical_);
  DgcDecodeArgs decode;
  decode.table = tables.table();
  decode.codes = tables.codes();
  decode.control = control;
  decode.payload_bytes = canonical_.bytes - kWireHeaderBytes;
  decode.workers = context_.communicator.size() * context_.local_workers;
  decode.coded = gather(coded_);
  decode.messages = static_cast<std::byte*>(canonical_.all.data());
  context_.backend.dgc_decode(decode);
  return decode.messages;
}

}  // namespace dgc
