#pragma once

#include <memory>

#include "data/batches.h"
#include "models/network.h"

namespace dgc {

// Holds a batch on the device, at addresses that never change, and uploads the next batch meanwhile.
class BatchInput {
 public:
  struct Sizes {
    int64_t rows = 0;         // rows of the largest batch
    int64_t most_labels = 0;  // Dataset::most_labels()
  };
  // activations: the type of the network's input, unless the input is tokens.
  BatchInput(Backend&, const Network&, const Sizes&, DType activations);

  void stage(const Batch&);  // starts the upload; the batch may be reused on return
  void arrive();             // queued; from here on the views are the batch staged last

  int64_t rows() const { return rows_; }
  View x() const { return x(rows_); }
  // x with more rows than the batch has, as padding. The padding is left over from other batches.
  View x(int64_t rows) const { return {x_.data(), network_.shape(0, rows), type_}; }
  View labels() const;
  View lengths() const;  // i32 [streams]: RunContext::lengths; null where each row has labels of its own

 private:
  bool pads() const { return sizes_.most_labels > 0; }

  Backend& backend_;
  const Network& network_;
  Sizes sizes_;
  DType type_;
  int64_t labels_per_row_, streams_;
  int64_t rows_ = 0, staged_rows_ = 0;
  Buffer x_, labels_, lengths_;
  std::unique_ptr<Upload> x_upload_, label_upload_, length_upload_;
};

}  // namespace dgc
