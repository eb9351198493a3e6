#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "run/output_file.h"

namespace dgc {

// CRC-32C (Castagnoli), as in RFC 3720 B.4. Debian's zlib and xxhash lack it, and libisal brings a whole erasure coder.
uint32_t crc32c(std::string_view bytes);

// Scalars for TensorBoard, in a new RUN/events.out.tfevents.* file: TFRecord frames around `Event` messages
// (tensorflow/core/util/event.proto).
class TensorBoardWriter {
 public:
  // A writer that resumes after `step` tells TensorBoard to forget what earlier files hold beyond it; 0 starts afresh.
  // Throws a UserError if the file cannot be opened.
  TensorBoardWriter(const std::filesystem::path& run, int64_t step);

  // A value that is not finite is left out: TensorBoard draws it as a marker that hides the curve.
  void scalar(const std::string& tag, int64_t step, double value);

 private:
  void write_event(const std::string& event);

  OutputFile file_;
};

}  // namespace dgc
